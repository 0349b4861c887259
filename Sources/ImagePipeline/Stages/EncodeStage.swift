internal import ImageCodecs
internal import Tracing

/// Rows of the result as shown to compressed bytes.
struct EncodeStage: ~Copyable {
  /// The most bytes that are handed out at once.
  static let bufferByteCount = 64 * 1024
  /// Of each plane: as many as a row of a JPEG's units has at most.
  private static let rowCount = 16

  private var encoder: Encoder?
  /// Where the result has a limit of bytes: it is then handed out when it is known to keep that.
  private var target: ByteTarget?
  private let buffer: PixelBuffer
  /// Of what is handed out.
  private(set) var options: EncoderOptions
  private(set) var outputByteCount: UInt64 = 0
  /// Covers colour conversion and orientation too, which the pipeline runs under it.
  var meter: StageMeter

  init(plan: Plan, budget: PictureBudget, tracing: TraceTarget) throws(PipelineError) {
    let buffer = try withCodecErrors { () throws(CodecError) in
      try PixelBuffer(byteCount: Self.bufferByteCount, budget: budget)
    }
    let target = try plan.byteLimit.map { (limit) throws(PipelineError) in
      try ByteTarget(limit, encoder: plan.encoder, budget: budget)
    }
    let encoder = try withCodecErrors { () throws(CodecError) in try Encoder(options: plan.encoder, budget: budget) }
    self.buffer = buffer
    self.target = target
    self.encoder = consume encoder
    options = plan.encoder
    meter = StageMeter("encode", tracing: tracing)
  }

  /// Takes rows and hands out what they complete, a few at a time: what waits of the result is never much.
  mutating func push(_ strip: borrowing Strip, _ output: (RawSpan) -> Void) throws(PipelineError) {
    var waiting = (0..<strip.format.planeCount).map { strip.plane($0) }
    while waiting.contains(where: { $0.rowCount > 0 }) {
      var portion = waiting.map { $0.prefix(Self.rowCount) }
      if strip.format == .ycc8, options.subsampling == .quarter {
        for index in 1...2 { portion[index] = portion[index].prefix(Self.rowCount / 2) }
      }
      for index in waiting.indices { waiting[index].dropFirst(portion[index].rowCount) }
      try push(portion: Strip(format: strip.format, rows: portion))
      try drain(output)
    }
  }

  private mutating func push(portion: borrowing Strip) throws(PipelineError) {
    do { try encoder?.write(portion) } catch { throw PipelineError(error) }
    target?.hold(portion)
  }

  /// Hands out what is compressed so far.
  mutating func drain(_ output: (RawSpan) -> Void) throws(PipelineError) {
    try encoder?.drain(buffer) { (bytes) throws(PipelineError) in
      if target != nil {
        try target?.collect(bytes)
      } else {
        outputByteCount += UInt64(bytes.byteCount)
        output(bytes)
      }
    }
  }

  /// Ends the result and hands out the rest.
  /// - `lateRights`: artist and copyright that were found after the result was begun without them.
  mutating func finish(
    lateRights: [UInt8], _ cancellation: Cancellation, _ output: (RawSpan) -> Void
  ) throws(PipelineError) {
    do {
      if !lateRights.isEmpty { try encoder?.append(exif: lateRights) }
      try encoder?.finish()
    } catch { throw PipelineError(error) }
    try drain(output)
    encoder = nil
    guard let result = try target?.settle(lateRights: lateRights, buffer, cancellation) else { return }
    target = nil
    options = result.options
    outputByteCount = result.bytes.byteCount
    result.bytes.forEach(output)
  }

  /// - `peakMemory`: the most bytes that the picture held.
  mutating func finishSpan(peakMemory: Int) {
    let (options, byteCount) = (options, Int(outputByteCount))
    meter.finish { attributes in
      attributes["imageworker.format"] = .string(options.format.rawValue)
      attributes["imageworker.width"] = .int64(Int64(options.width))
      attributes["imageworker.height"] = .int64(Int64(options.height))
      attributes["imageworker.pixels"] = .int64(Int64(options.width * options.height))
      attributes["imageworker.quality"] = .int64(Int64(options.quality))
      attributes["imageworker.bytes"] = .int64(Int64(byteCount))
      attributes["imageworker.peak_memory_bytes"] = .int64(Int64(peakMemory))
    }
  }
}
