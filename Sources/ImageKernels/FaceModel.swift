internal import CPixels

/// The detector of faces, which is loaded once and never changes.
package final class FaceModel: @unchecked Sendable {
  private enum Handle {
    /// A cascade of Haar features, which searches a gray image.
    case cascade(OpaquePointer)
    /// A convolutional network, which searches an image in color.
    case network(OpaquePointer)
  }

  // C's functions only read what it points to, and it lives as long as this object.
  private let handle: Handle

  /// Reads the detector in the bytes of a file: a cascade of OpenCV, or a network of TensorFlow Lite.
  /// - Throws: `FaceModelError` for bytes that are none.
  package init(bytes: [UInt8]) throws(FaceModelError) {
    var reason: UnsafePointer<CChar>?
    let handle =
      if cpixels_network_is_file(bytes, bytes.count) {
        cpixels_network_create(bytes, bytes.count, &reason).map { Handle.network($0) }
      } else {
        bytes.withUnsafeBytes { text in
          cpixels_cascade_create(text.baseAddress?.assumingMemoryBound(to: CChar.self), text.count, &reason)
        }.map { Handle.cascade($0) }
      }
    guard let handle else { throw FaceModelError(reason) }
    self.handle = handle
  }

  deinit {
    switch handle {
    case .cascade(let cascade): cpixels_cascade_destroy(cascade)
    case .network(let network): cpixels_network_destroy(network)
    }
  }

  /// A hash of the file.
  package var identity: UInt64 {
    switch handle {
    case .cascade(let cascade): cpixels_cascade_identity(cascade)
    case .network(let network): cpixels_network_identity(network)
    }
  }

  /// The longer side of the image that is searched, unless the image is smaller.
  package var maxSide: Int {
    switch handle {
    case .cascade: Int(CPIXELS_FACES_MAX_SIDE)
    case .network: Int(CPIXELS_NETWORK_MAX_SIDE)
    }
  }

  /// The number of samples of a pixel that is searched.
  var channelCount: Int {
    switch handle {
    case .cascade: 1
    case .network: 3
    }
  }

  /// Converts pixels of 1, 3 or 4 channels to those that are searched.
  func convert(_ row: UnsafePointer<UInt8>, channelCount: Int, width: Int, to pixels: UnsafeMutablePointer<UInt8>) {
    switch handle {
    case .cascade: cpixels_faces_gray(row, width, UInt32(channelCount), pixels)
    case .network: cpixels_network_rgb(row, width, UInt32(channelCount), pixels)
    }
  }

  /// The size of the memory that a search needs.
  func workspaceByteCount(width: Int, height: Int) -> Int {
    switch handle {
    case .cascade: cpixels_faces_workspace(UInt32(width), UInt32(height))
    case .network(let network): cpixels_network_workspace(network, UInt32(width), UInt32(height))
    }
  }

  /// Searches an upright image.
  ///
  /// Returns the number of faces that were stored, the largest first.
  func find(
    in pixels: UnsafePointer<UInt8>, width: Int, height: Int, workspace: UnsafeMutableRawPointer,
    faces: inout [cpixels_face]
  ) -> Int {
    let (width, height) = (UInt32(width), UInt32(height))
    return switch handle {
    case .cascade(let cascade):
      cpixels_faces_find(cascade, pixels, width, height, workspace, CPIXELS_ISA_BEST, &faces, faces.count)
    case .network(let network):
      cpixels_network_find(network, pixels, width, height, workspace, CPIXELS_ISA_BEST, &faces, faces.count)
    }
  }
}

/// The reason why a file is no detector.
package struct FaceModelError: Error, Sendable, Hashable {
  /// A clause about the file, such as "a tree has no leaves".
  package let reason: String

  init(_ reason: UnsafePointer<CChar>?) {
    self.reason = reason.map { String(cString: $0) } ?? "it is not a face detector"
  }
}
