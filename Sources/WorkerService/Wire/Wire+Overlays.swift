internal import FoundationEssentials
package import ImagePipeline
internal import ResultCache
internal import WorkerProtocol

extension WorkerEnvironment {
  /// Returns the images that the overlays of a request can name: its own, and for other names those of the operator.
  /// - `wire`: the auxiliary images of the request.
  /// - Throws: `invalidField`, `limitExceeded`, and `CallerError` if its caller may only use presets.
  func auxiliaryImages(
    _ wire: [Imageworker_V1_AuxiliaryImage], beside image: Data
  ) throws -> AuxiliaryImages {
    var images = overlays.value
    guard !wire.isEmpty else { return images }
    try currentCaller?.checkConfiguring(field: "auxiliary_images")
    guard !takesOnlyPresets else {
      throw PipelineError(
        .invalidField, "this worker accepts only presets; leave auxiliary_images empty", field: "auxiliary_images",
        of: .request)
    }
    guard wire.count <= AuxiliaryImage.maxCount else {
      throw PipelineError(
        .invalidField,
        "auxiliary_images has \(wire.count) entries; at most \(AuxiliaryImage.maxCount) are accepted",
        field: "auxiliary_images", of: .request)
    }
    try limits.check(messageByteCount: wire.reduce(image.count) { $0 + $1.image.count })
    var names: Set<String> = []
    for (index, auxiliary) in wire.enumerated() {
      let path = "auxiliary_images[\(index)]"
      guard (1...AuxiliaryImage.maxNameByteCount).contains(auxiliary.name.utf8.count) else {
        throw PipelineError(
          .invalidField,
          "\(path).name has \(auxiliary.name.utf8.count) bytes; it must have between 1 and "
            + "\(AuxiliaryImage.maxNameByteCount)", field: "\(path).name", of: .request)
      }
      guard names.insert(auxiliary.name).inserted else {
        throw PipelineError(
          .invalidField, "\(path).name is \"\(auxiliary.name.prefix(64))\", which another auxiliary image has, too",
          field: "\(path).name", of: .request)
      }
      guard !auxiliary.image.isEmpty else {
        throw PipelineError(
          .invalidField, "\(path).image is empty; it must be an image file", field: "\(path).image", of: .request)
      }
      images.add(AuxiliaryImage(received: auxiliary.image, name: auxiliary.name))
    }
    return images
  }
}

extension AuxiliaryImage {
  /// Creates an image that came with a request.
  fileprivate init(received bytes: Data, name: String) {
    self.init(
      name: name, byteCount: bytes.count, digest: bytes.withUnsafeBytes { InputHasher.digest(of: $0) }, isReceived: true
    ) { $0(bytes.bytes) }
  }

  /// Creates an image of the operator.
  package init(ofOperator bytes: [UInt8], name: String) {
    self.init(name: name, bytes: bytes, digest: bytes.withUnsafeBytes { InputHasher.digest(of: $0) })
  }
}
