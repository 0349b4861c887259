internal import FoundationEssentials
internal import ImagePipeline

/// Plans a picture from its first bytes, without decoding any of it.
struct Inspection {
  let limits: WorkerLimits

  /// - `bytes`: the picture, or as much of its beginning as holds the header.
  /// - Throws: `truncatedImage` when the header is not complete, and what planning throws.
  func plan(_ bytes: Data, configuration: ProcessingConfiguration) throws(PipelineError) -> Plan {
    var reader = PictureReader(limits: limits.picture)
    let (isComplete, _) = try reader.push(bytes.bytes, isLast: !Self.isBeginning(bytes))
    guard isComplete else {
      throw PipelineError(.truncatedImage, "the picture ends before its header does")
    }
    return try reader.plan(configuration)
  }

  /// Whether the bytes are those of a JPEG that goes on behind them: how long it is, they do not tell.
  private static func isBeginning(_ bytes: Data) -> Bool {
    bytes.starts(with: [0xFF, 0xD8]) && !bytes.suffix(2).elementsEqual([0xFF, 0xD9])
  }
}
