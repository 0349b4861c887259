internal import CPixels

/// A detector of faces: a cascade of Haar features, which is loaded once and never changes.
package final class FaceCascade: @unchecked Sendable {
  // C's functions only read what it points to, and it lives as long as this object.
  let handle: OpaquePointer

  /// Reads the cascade in the text of a file of OpenCV.
  /// - Throws: `FaceModelError` for a text that is none.
  package init(text: [UInt8]) throws(FaceModelError) {
    var reason: UnsafePointer<CChar>?
    let handle = text.withUnsafeBytes { bytes in
      cpixels_cascade_create(bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count, &reason)
    }
    guard let handle else { throw FaceModelError(reason) }
    self.handle = handle
  }

  deinit { cpixels_cascade_destroy(handle) }

  /// A hash of the file.
  package var identity: UInt64 { cpixels_cascade_identity(handle) }
}
