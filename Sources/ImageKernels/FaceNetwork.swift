internal import CPixels

/// A detector of faces: a convolutional network, which is loaded once and never changes.
package final class FaceNetwork: @unchecked Sendable {
  // C's functions only read what it points to, and it lives as long as this object.
  let handle: OpaquePointer

  /// Reads the network in the bytes of a file of TensorFlow Lite.
  /// - Throws: `FaceModelError` for bytes that are none, or one of another kind.
  package init(bytes: [UInt8]) throws(FaceModelError) {
    var reason: UnsafePointer<CChar>?
    guard let handle = cpixels_network_create(bytes, bytes.count, &reason) else { throw FaceModelError(reason) }
    self.handle = handle
  }

  deinit { cpixels_network_destroy(handle) }

  /// A hash of the file.
  package var identity: UInt64 { cpixels_network_identity(handle) }
}
