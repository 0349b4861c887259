internal import CPixels

/// A detector of faces: a cascade of Haar features, which is loaded once and never changes.
package final class FaceCascade: @unchecked Sendable {
  // C's functions only read what it points to, and it lives as long as this object.
  let handle: OpaquePointer

  /// Reads the cascade in the text of a file of OpenCV.
  /// - Throws: `FaceCascadeError` for a text that is none.
  package init(text: [UInt8]) throws(FaceCascadeError) {
    var reason: UnsafePointer<CChar>?
    let handle = text.withUnsafeBytes { bytes in
      cpixels_cascade_create(bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count, &reason)
    }
    guard let handle else { throw FaceCascadeError(reason) }
    self.handle = handle
  }

  deinit { cpixels_cascade_destroy(handle) }

  /// A hash of the file.
  package var identity: UInt64 { cpixels_cascade_identity(handle) }
}

/// The reason why a file is no detector.
package struct FaceCascadeError: Error, Sendable, Hashable {
  /// A clause about the text, such as "a tree has no leaves".
  package let reason: String

  init(_ reason: UnsafePointer<CChar>?) {
    self.reason = reason.map { String(cString: $0) } ?? "it is no detector"
  }
}
