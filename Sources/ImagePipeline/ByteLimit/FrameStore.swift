internal import ImageCodecs

/// The frames of a result, compressed without loss and spooled, so that they can be encoded more than once.
///
/// It is a class so that it can be part of a search, which is copied.
final class FrameStore {
  var encoder: Encoder
  private let budget: ImageBudget

  /// Creates an empty store for the frames of an encoder with these options.
  init(_ options: EncoderOptions, budget: ImageBudget) throws(CodecError) {
    encoder = try Encoder(options: Self.options(options), budget: budget)
    self.budget = budget
  }

  /// An APNG, which compresses fast and keeps the colors of transparent pixels.
  private static func options(_ options: EncoderOptions) -> EncoderOptions {
    var store = EncoderOptions(
      format: .png, width: options.width, height: options.height, pixelFormat: options.pixelFormat)
    store.png = PNGOptions(compressionLevel: 1)
    (store.hasFrames, store.spill) = (true, options.spill)
    return store
  }

  /// Returns an upper bound of the bytes that the store charges, including those for reading it.
  static func estimatedByteCount(_ encoder: EncoderOptions) throws(CodecError) -> UInt64 {
    // The decoder has a canvas, a strip, and the state of an inflater.
    let decoder = UInt64(encoder.width * encoder.height * 4 + encoder.width * 64) + 1 << 20
    return try options(encoder).estimatedByteCount() + decoder
  }

  /// Encodes frames of the complete store, and finishes their encoder.
  /// - `interval`: One of so many frames is encoded, and lasts as long as all of them.
  func write(
    to next: inout Encoder, interval: Int, _ buffer: PixelBuffer, _ allowance: WorkAllowance
  ) throws(PipelineError) {
    encoder.rewind()
    var reader = try FrameReader(interval: interval, budget: budget)
    while !reader.isDone {
      let count = try withCodecErrors { () throws(CodecError) in try encoder.read(into: buffer) }
      try buffer.withBytes(count) { (bytes) throws(PipelineError) in
        try reader.read(bytes, isLast: count == 0, next: &next, allowance)
      }
    }
    try next.finish(within: allowance)
  }
}

/// Decodes stored frames and passes them to an encoder.
private struct FrameReader: ~Copyable {
  private var decoder: Decoder
  private let interval: Int
  /// The number of frames since the last one that was passed.
  private var skippedCount = 0
  private var isStarted = false
  private var isInFrame = false
  /// Whether all frames were passed.
  private(set) var isDone = false

  init(interval: Int, budget: ImageBudget) throws(PipelineError) {
    self.interval = interval
    // What was stored has been checked against the limits of the image.
    let limits = CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 0)
    decoder = try withCodecErrors { () throws(CodecError) in
      try Decoder(format: .png, limits: limits, budget: budget)
    }
  }

  /// Decodes the next bytes of the store.
  mutating func read(
    _ bytes: RawSpan, isLast: Bool, next: inout Encoder, _ allowance: WorkAllowance
  ) throws(PipelineError) {
    do throws(CodecError) {
      var rest = bytes
      if !isStarted {
        let progress = try decoder.readHeader(rest, isLast: isLast)
        rest = rest.extracting(droppingFirst: progress.consumedByteCount)
        guard progress.value else { return }
        if decoder.header.hasFrames {
          try decoder.selectFrames(first: 0, count: 0)
          next.keepAnimation()  // all of its frames may be equal, and stored as one
        }
        _ = try decoder.start(scale: 8)
        isStarted = true
      }
      while !isDone {
        let progress = try decoder.read(rest, isLast: isLast)
        rest = rest.extracting(droppingFirst: progress.consumedByteCount)
        guard progress.value != .needsInput else { return }
        try pass(progress.value, next: &next, allowance)
      }
    } catch { throw try PipelineError(interruption: error, allowance) }
  }

  private mutating func pass(
    _ event: Decoder.Event, next: inout Encoder, _ allowance: WorkAllowance
  ) throws(CodecError) {
    switch event {
    case .stripReady:
      if !isInFrame {
        skippedCount = skippedCount + 1 < interval && next.extendFrame(by: decoder.frame) ? skippedCount + 1 : 0
        if skippedCount == 0 { try next.beginFrame(decoder.frame) }
      }
      isInFrame = true
      if skippedCount == 0 { try decoder.withStrip { (strip) throws(CodecError) in try next.write(strip) } }
    case .frameDone:
      if skippedCount == 0 { try next.finish(.frame) { (try? allowance.check()) != nil } }
      isInFrame = false
    case .done: isDone = true
    case .needsInput: break
    }
  }
}
