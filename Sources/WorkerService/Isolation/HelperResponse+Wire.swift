internal import ImagePipeline
internal import ProtobufWire
internal import WorkerIsolation

/// Responses as a helper sends them.
///
/// A helper may have been taken over by a hostile image, so reading accepts any bytes.
extension HelperResponse {
  var bytes: [UInt8] {
    var writer = WireWriter()
    writer.varint(1, isPartial ? 1 : 0, isPresent: true)  // a message must not be empty
    if let error { writer.message(2) { error.write(to: &$0) } }
    writer.varint(3, UInt64(work.consumedByteCount))
    writer.varint(4, UInt64(work.bufferedByteCount))
    writer.varint(5, work.isPaused ? 1 : 0)
    if let plan = work.plan { writer.message(6) { plan.write(to: &$0) } }
    for segment in segments {
      writer.message(7) {
        $0.varint(1, UInt64(segment.rendition))
        $0.varint(2, UInt64(segment.byteCount))
      }
    }
    for (index, outcome) in work.ends {
      writer.message(8) { writer in
        writer.varint(1, UInt64(index))
        switch outcome {
        case .success(let report): if let bytes = report.wireBytes { writer.data(2, bytes) }
        case .failure(let error): writer.message(3) { error.write(to: &$0) }
        }
      }
    }
    for span in spans { writer.message(9) { span.write(to: &$0) } }
    writer.varint(10, UInt64(missingDefenses.rawValue))
    writer.varint(11, work.isStarted ? 1 : 0)
    return writer.bytes
  }

  /// Reads a response; returns `nil` if the bytes are none.
  init?(_ bytes: [UInt8]) {
    guard let message = WireMessage(bytes) else { return nil }
    isPartial = message.flag(1)
    error = message.message(2).map { PipelineError($0) }
    work.consumedByteCount = message.count(3)
    work.bufferedByteCount = message.count(4)
    work.isPaused = message.flag(5)
    work.plan = message.message(6).flatMap { PlannedImage($0) }
    work.isStarted = message.flag(11)
    segments = message.messages(7).map { Segment(rendition: $0.count(1), byteCount: $0.count(2)) }
    for outcome in message.messages(8) {
      if let report = outcome.all(2).last.flatMap({ ProcessingReport(wireBytes: $0) }) {
        work.ends.append((outcome.count(1), .success(report)))
      } else if let error = outcome.message(3) {
        work.ends.append((outcome.count(1), .failure(PipelineError(error))))
      } else {
        return nil
      }
    }
    spans = message.messages(9).map { RecordedSpan($0) }
    missingDefenses = MissingDefenses(rawValue: UInt32(clamping: message.integer(10)))
  }
}

extension PipelineError {
  fileprivate func write(to writer: inout WireWriter) {
    writer.string(1, code.rawValue)
    writer.string(2, message)
    if let field { writer.string(3, field, isPresent: true) }
    if let limit {
      writer.message(4) {
        $0.string(1, limit.name)
        $0.varint(2, limit.limit)
        $0.varint(3, limit.value)
      }
    }
    if let neededByteCount { writer.varint(5, UInt64(clamping: neededByteCount), isPresent: true) }
  }

  fileprivate init(_ message: WireMessage) {
    self.init(
      message.text(1).flatMap(Code.init(rawValue:)) ?? .internalDefect, message.text(2) ?? "",
      field: message.text(3),
      limit: message.message(4).map { Limit(name: $0.text(1) ?? "", limit: $0.integer(2), value: $0.integer(3)) })
    neededByteCount = message.has(5) ? message.count(5) : nil
  }
}

extension PlannedImage {
  fileprivate func write(to writer: inout WireWriter) {
    writer.varint(1, workingSetByteCount)
    writer.varint(2, reservedByteCount)
    for rendition in renditions {
      writer.message(3) { writer in
        switch rendition {
        case .success(let result):
          writer.data(1, result.input.wireBytes)
          writer.data(2, result.output.wireBytes)
          writer.varint(3, result.decodedByteCount)
          for warning in result.warnings { writer.data(5, warning.wireBytes) }
        case .failure(let error): writer.message(4) { error.write(to: &$0) }
        }
      }
    }
  }

  fileprivate init?(_ message: WireMessage) {
    var renditions: [Result<PlannedResult, PipelineError>] = []
    for rendition in message.messages(3) {
      if let error = rendition.message(4) {
        renditions.append(.failure(PipelineError(error)))
        continue
      }
      guard let input = rendition.all(1).last.flatMap({ ImageInfo(wireBytes: $0) }),
        let output = rendition.all(2).last.flatMap({ ImageInfo(wireBytes: $0) })
      else { return nil }
      renditions.append(
        .success(
          PlannedResult(
            input: input, output: output, decodedByteCount: UInt64(rendition.count(3)),
            warnings: rendition.all(5).compactMap { Warning(wireBytes: $0) })))
    }
    self.init(
      renditions: renditions, workingSetByteCount: UInt64(message.count(1)),
      reservedByteCount: UInt64(message.count(2)))
  }
}
