internal import CPixels

/// The detector of faces.
package enum FaceModel: Sendable {
  /// A cascade, which searches a gray image.
  case cascade(FaceCascade)
  /// A network, which searches an image in color.
  case network(FaceNetwork)

  /// Reads the detector in the bytes of a file, of either kind.
  /// - Throws: `FaceModelError` for bytes that are none.
  package init(bytes: [UInt8]) throws(FaceModelError) {
    self =
      cpixels_network_is_file(bytes, bytes.count)
      ? .network(try FaceNetwork(bytes: bytes)) : .cascade(try FaceCascade(text: bytes))
  }

  /// A hash of the file.
  package var identity: UInt64 {
    switch self {
    case .cascade(let cascade): cascade.identity
    case .network(let network): network.identity
    }
  }

  /// The longer side of the image that is searched, unless the image is smaller.
  package var maxSide: Int {
    switch self {
    case .cascade: Int(CPIXELS_FACES_MAX_SIDE)
    case .network: Int(CPIXELS_NETWORK_MAX_SIDE)
    }
  }

  /// The number of samples of a pixel that is searched.
  var channelCount: Int {
    switch self {
    case .cascade: 1
    case .network: 3
    }
  }

  /// Converts pixels of 1, 3 or 4 channels to those that are searched.
  func convert(_ row: UnsafePointer<UInt8>, channelCount: Int, width: Int, to pixels: UnsafeMutablePointer<UInt8>) {
    switch self {
    case .cascade: cpixels_faces_gray(row, width, UInt32(channelCount), pixels)
    case .network: cpixels_network_rgb(row, width, UInt32(channelCount), pixels)
    }
  }

  /// The size of the memory that a search needs.
  func workspaceByteCount(width: Int, height: Int) -> Int {
    switch self {
    case .cascade: cpixels_faces_workspace(UInt32(width), UInt32(height))
    case .network(let network): cpixels_network_workspace(network.handle, UInt32(width), UInt32(height))
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
    return switch self {
    case .cascade(let cascade):
      cpixels_faces_find(cascade.handle, pixels, width, height, workspace, CPIXELS_ISA_BEST, &faces, faces.count)
    case .network(let network):
      cpixels_network_find(network.handle, pixels, width, height, workspace, CPIXELS_ISA_BEST, &faces, faces.count)
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
