internal import ImageCodecs
internal import Tracing

/// Decodes bytes to strips of rows.
struct DecodeStage: ~Copyable {
  private(set) var decoder: Decoder
  // At most the prefix from format detection; the decoder reads it before any other byte.
  private var leftover: [UInt8]
  // Bytes that were read when the image's pixels were searched.
  private let stored: CompressedBytes?
  /// The time of the search.
  let analysisTime: Duration
  private(set) var inputByteCount: UInt64
  private let scale: Int
  /// The number of frames that were decoded.
  private(set) var frameCount = 0
  /// The layout of the decoded rows.
  let layout: PixelLayout
  /// The conversions of the image's colors; empty if there is nothing to convert.
  let conversions: [ConversionKey: ColorConversion]
  let clock: StageClock

  /// Starts the decoder of `reader`.
  /// - `plans`: The plans of the image's renditions, at least one.
  init(_ reader: consuming ImageReader, plans: [Plan], tracing: TraceTarget) throws(PipelineError) {
    let (leftover, inputByteCount) = (reader.prefix, reader.inputByteCount)
    let (stored, analysisTime) = (reader.stored, reader.analysisTime)
    guard var decoder = reader.decoder.take() else { throw .unfinishedHeader }
    let clock = StageClock(tracing: tracing)
    let interrupted = clock.enter(.decode)
    let layout: PixelLayout
    var conversions: [ConversionKey: ColorConversion] = [:]
    let scale = plans[0].decodeScale
    do {
      for key in Set(plans.compactMap { ConversionKey($0) }) {
        conversions[key] = try decoder.makeColorConversion(
          of: key.format, to: key.target, keepsDepth: key.keepsDepth)
      }
      layout = try decoder.start(
        scale: scale, keepsCMYK: plans.contains { $0.profileFormat == .cmyk8 },
        toleratesTruncation: plans.contains(where: \.toleratesTruncation),
        toleratesDamage: plans.contains(where: \.toleratesDamage),
        maySkipSmoothing: plans.allSatisfy(\.hidesBlocks))
    } catch { throw PipelineError(error) }
    clock.leave(to: interrupted)
    self.decoder = decoder
    self.leftover = leftover
    self.stored = stored
    self.analysisTime = analysisTime
    self.inputByteCount = inputByteCount
    self.scale = scale
    self.layout = layout
    self.conversions = conversions
    self.clock = clock
  }

  /// Decodes until a strip is ready, more bytes are needed, or the image is done.
  /// - `consumed`: Increased by the number of consumed bytes.
  mutating func read(_ bytes: RawSpan, isLast: Bool, consumed: inout Int) throws(PipelineError) -> Decoder.Event {
    let interrupted = clock.enter(.decode)
    defer { clock.leave(to: interrupted) }
    do {
      if !leftover.isEmpty {
        let prefix = leftover
        let isLastPrefix = isLast && bytes.isEmpty && (stored?.restByteCount ?? 0) == 0
        let progress = try prefix.withRawSpan { (prefix) throws(CodecError) in
          try decoder.read(prefix, isLast: isLastPrefix)
        }
        leftover.removeFirst(progress.consumedByteCount)
        if progress.value == .frameDone || progress.value == .done { frameCount += 1 }
        if progress.value != .needsInput { return progress.value }
      }
      while let stored, stored.restByteCount > 0 {
        let event = try readStored(stored, isLast: isLast && bytes.isEmpty)
        if event != .needsInput { return event }
      }
      let progress = try decoder.read(bytes, isLast: isLast)
      consumed += progress.consumedByteCount
      inputByteCount += UInt64(progress.consumedByteCount)
      if progress.value == .frameDone || progress.value == .done { frameCount += 1 }
      return progress.value
    } catch { throw PipelineError(error) }
  }

  /// Decodes the next stored bytes.
  /// - `isLast`: Whether no bytes follow all that are stored.
  private mutating func readStored(_ stored: CompressedBytes, isLast: Bool) throws(CodecError) -> Decoder.Event {
    var (event, byteCount) = (Decoder.Event.needsInput, 0)
    let restByteCount = stored.restByteCount
    try stored.withChunk(at: stored.consumedByteCount) { (bytes) throws(CodecError) in
      let progress = try decoder.read(bytes, isLast: isLast && bytes.byteCount == restByteCount)
      (event, byteCount) = (progress.value, progress.consumedByteCount)
    }
    stored.consume(byteCount)
    inputByteCount += UInt64(byteCount)
    if event == .frameDone || event == .done { frameCount += 1 }
    return event
  }

  /// The number of bytes of the image that have arrived, without those that `read` is called with.
  var arrivedByteCount: UInt64 { inputByteCount + UInt64(stored?.restByteCount ?? 0) }

  /// Counts bytes that follow the image, also those that are stored.
  mutating func skip(_ byteCount: Int) {
    let rest = stored?.restByteCount ?? 0
    stored?.consume(rest)
    inputByteCount += UInt64(rest + byteCount)
  }

  /// The image's properties as far as its frames are known; those that the header specified remain.
  func describeFrames(of input: inout ImageInfo) {
    let header = decoder.header
    guard header.hasFrames, header.frameCount > 0 else { return }
    input.frameCount = header.frameCount
    if header.frameCount > 1 { input.playCount = header.playCount }
  }

  /// EXIF data with artist and copyright, as far as they have been read.
  var copyright: [UInt8] { decoder.header.copyright }

  /// The warnings about the image so far.
  var warnings: [Warning] {
    let header = decoder.header
    let damage = header.damagedRow.map { Warning.damaged(row: $0, height: header.height) }
    // A crop may end within the first frame, which the result has nevertheless.
    let shownFrameCount = max(1, frameCount)
    return header.warnings.map { Warning($0, of: header, frameCount: shownFrameCount) } + (damage.map { [$0] } ?? [])
  }

  /// Checks that the image is complete, or that `plan` tolerates its missing parts.
  /// - Throws: `truncatedImage` or `corruptImage` if it does not.
  func checkWholeness(_ plan: Plan) throws(PipelineError) {
    let header = decoder.header
    if header.warnings.contains(.truncated) && !plan.toleratesTruncation {
      throw PipelineError(
        .truncatedImage, "the image is truncated, and this rendition needs all of it; set tolerate_truncation")
    }
    let isDamaged = header.damagedRow != nil || header.warnings.contains(.damagedWithoutLoss)
    if isDamaged && !plan.toleratesDamage {
      throw PipelineError(
        .corruptImage, "the image is damaged, and this rendition needs all of it; set tolerate_damage")
    }
  }

  /// Ends the span of decoding.
  mutating func finish() {
    let header = decoder.header
    clock.finish(.decode) { attributes in
      attributes["imageworker.format"] = .string(header.format.rawValue)
      attributes["imageworker.width"] = .int64(Int64(header.width))
      attributes["imageworker.height"] = .int64(Int64(header.height))
      attributes["imageworker.pixels"] = .int64(Int64(header.width * header.height))
      attributes["imageworker.bytes"] = .int64(Int64(inputByteCount))
      if frameCount > 1 { attributes["imageworker.frames"] = .int64(Int64(frameCount)) }
      attributes["imageworker.decode_scale_eighths"] = .int64(Int64(scale))
    }
  }
}

/// The input and the target of a conversion of colors.
struct ConversionKey: Hashable {
  /// The input pixel format.
  let format: PixelFormat
  let target: ColorTarget
  /// Whether samples of 16 bits stay such.
  let keepsDepth: Bool

  /// Returns `nil` for a plan that converts nothing.
  init?(_ plan: Plan) {
    guard let target = plan.color.target else { return nil }
    (format, self.target, keepsDepth) = (plan.profileFormat, target, plan.color.isDeep)
  }
}
