internal import CPixels

/// The detector of faces: a cascade of Haar features, which is loaded once and never changes.
package final class FaceCascade: @unchecked Sendable {
  // C's functions only read what it points to, and it lives as long as this object.
  let handle: OpaquePointer

  /// Loads the cascade in a file of OpenCV.
  /// - Throws: `FaceCascadeError` for a file that cannot be read or is no such cascade.
  package init(path: String) throws(FaceCascadeError) {
    var reason: UnsafePointer<CChar>?
    guard let handle = cpixels_cascade_load(path, &reason) else { throw FaceCascadeError(reason) }
    self.handle = handle
  }

  /// Reads the cascade in the text of a file.
  /// - Throws: `FaceCascadeError` for a text that is none.
  package init(text: String) throws(FaceCascadeError) {
    var (text, reason) = (text, UnsafePointer<CChar>?.none)
    let handle = text.withUTF8 { bytes in
      bytes.withMemoryRebound(to: CChar.self) { cpixels_cascade_create($0.baseAddress, $0.count, &reason) }
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
  /// A clause about the file, such as "there is no such file".
  package let reason: String

  fileprivate init(_ reason: UnsafePointer<CChar>?) {
    self.reason = reason.map { String(cString: $0) } ?? "it is no cascade"
  }
}
