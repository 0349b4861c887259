internal import ImageCodecs
internal import Tracing

/// Bytes to strips of decoded rows.
struct DecodeStage: ~Copyable {
  private var decoder: Decoder
  // At most a sniffed prefix; given to the decoder before any other byte.
  private var leftover: [UInt8]
  private(set) var inputByteCount: UInt64
  private let scale: Int
  /// How the decoded rows lie.
  let layout: PixelLayout
  /// Of the picture's colours to sRGB; `nil` when there is nothing to convert.
  let conversion: ColorConversion?
  var meter: StageMeter

  init(_ reader: consuming PictureReader, plan: Plan, tracing: TraceTarget) throws(PipelineError) {
    let (leftover, inputByteCount) = (reader.leftover, reader.inputByteCount)
    var decoder = try reader.takeDecoder()
    var meter = StageMeter("decode", tracing: tracing)
    let began = meter.begin()
    let layout: PixelLayout
    let conversion: ColorConversion?
    do {
      conversion = try decoder.makeColorConversion(of: plan.profileFormat)
      layout = try decoder.start(
        scale: plan.decodeScale, keepsInks: plan.profileFormat == .cmyk8,
        toleratesTruncation: plan.toleratesTruncation)
    } catch { throw PipelineError(error) }
    meter.end(began)
    self.decoder = decoder
    self.leftover = leftover
    self.inputByteCount = inputByteCount
    self.layout = layout
    self.conversion = conversion
    self.meter = meter
    scale = plan.decodeScale
  }

  /// Decodes until a strip is ready, bytes are needed, or the picture is done.
  /// - `consumed`: grows by the bytes that were taken.
  mutating func read(_ bytes: RawSpan, isLast: Bool, consumed: inout Int) throws(PipelineError) -> Decoder.Event {
    let began = meter.begin()
    defer { meter.end(began) }
    do {
      if !leftover.isEmpty {
        let prefix = leftover
        let progress = try decoder.read(prefix.span.bytes, isLast: isLast && bytes.isEmpty)
        leftover.removeFirst(progress.consumedByteCount)
        if progress.value != .needsInput { return progress.value }
      }
      let progress = try decoder.read(bytes, isLast: isLast)
      consumed += progress.consumedByteCount
      inputByteCount += UInt64(progress.consumedByteCount)
      return progress.value
    } catch { throw PipelineError(error) }
  }

  /// Lends the rows of the last `.stripReady`.
  func withStrip(_ body: (borrowing Strip) throws(PipelineError) -> Void) throws(PipelineError) {
    try decoder.withStrip(body)
  }

  /// Artist and copyright, as far as they are known by now.
  var rights: [UInt8] { decoder.header.rights }

  var warnings: [String] { decoder.header.warnings.map(\.rawValue) }

  mutating func finish() {
    let header = decoder.header
    meter.finish { attributes in
      attributes["imageworker.format"] = .string(header.format.rawValue)
      attributes["imageworker.width"] = .int64(Int64(header.width))
      attributes["imageworker.height"] = .int64(Int64(header.height))
      attributes["imageworker.pixels"] = .int64(Int64(header.width * header.height))
      attributes["imageworker.bytes"] = .int64(Int64(inputByteCount))
      attributes["imageworker.decode_scale_eighths"] = .int64(Int64(scale))
    }
  }
}
