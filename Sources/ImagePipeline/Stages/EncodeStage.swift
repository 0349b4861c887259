internal import ImageCodecs
internal import Tracing

/// Rows of the result as shown to compressed bytes.
struct EncodeStage: ~Copyable {
  /// The most bytes that are handed out at once.
  static let bufferByteCount = 64 * 1024

  private var encoder: Encoder
  private let buffer: PixelBuffer
  private let options: EncoderOptions
  private(set) var outputByteCount: UInt64 = 0
  /// Covers colour conversion and orientation too, which the pipeline runs under it.
  var meter: StageMeter

  init(plan: Plan, budget: PictureBudget, tracing: TraceTarget) throws(PipelineError) {
    let buffer = try withCodecErrors { () throws(CodecError) in
      try PixelBuffer(byteCount: Self.bufferByteCount, budget: budget)
    }
    let encoder = try withCodecErrors { () throws(CodecError) in try Encoder(options: plan.encoder, budget: budget) }
    self.buffer = buffer
    self.encoder = encoder
    options = plan.encoder
    meter = StageMeter("encode", tracing: tracing)
  }

  mutating func push(_ strip: borrowing Strip) throws(PipelineError) {
    do { try encoder.write(strip) } catch { throw PipelineError(error) }
  }

  /// Hands out what is compressed so far.
  mutating func drain(_ output: (RawSpan) -> Void) {
    while true {
      let count = encoder.read(into: buffer)
      guard count > 0 else { return }
      outputByteCount += UInt64(count)
      output(UnsafeRawBufferPointer(start: buffer.base, count: count).bytes)
    }
  }

  /// Ends the result and hands out the rest.
  /// - `lateRights`: artist and copyright that were found after the result was begun without them.
  mutating func finish(lateRights: [UInt8], _ output: (RawSpan) -> Void) throws(PipelineError) {
    do {
      if !lateRights.isEmpty { try encoder.append(exif: lateRights) }
      try encoder.finish()
    } catch { throw PipelineError(error) }
    drain(output)
  }

  /// - `peakMemory`: the most bytes that the picture held.
  mutating func finishSpan(peakMemory: Int) {
    let (options, byteCount) = (options, Int(outputByteCount))
    meter.finish { attributes in
      attributes["imageworker.format"] = options.format.rawValue
      attributes["imageworker.width"] = options.width
      attributes["imageworker.height"] = options.height
      attributes["imageworker.pixels"] = options.width * options.height
      attributes["imageworker.quality"] = options.quality
      attributes["imageworker.bytes"] = byteCount
      attributes["imageworker.peak_memory_bytes"] = peakMemory
    }
  }
}
