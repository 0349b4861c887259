internal import WorkerProtocol

extension BatchPart {
  /// - `environment`: what presets are named in.
  init(_ wire: Imageworker_V1_BatchProcessRequest, environment: WorkerEnvironment) {
    itemID = wire.itemID
    content =
      switch wire.part {
      case .start(let start):
        .start(
          BatchStart(
            image: start.image, previewKey: start.previewKey,
            renditions: Result { try environment.renditions(of: start) }))
      case .chunk(let bytes): .chunk(bytes)
      case .end: .end
      case nil: nil
      }
  }
}
