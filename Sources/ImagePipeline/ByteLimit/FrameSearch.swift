internal import ImageCodecs

/// An animation that is completely encoded, and spooled by its encoder.
struct EncodedFrames: ~Copyable {
  private let encoder: Encoder
  let options: EncoderOptions
  /// The size of the result in bytes.
  let byteCount: UInt64

  init(_ encoder: consuming Encoder, options: EncoderOptions) {
    byteCount = UInt64(encoder.pendingByteCount)
    self.encoder = encoder
    self.options = options
  }

  /// Returns the encoder, from which the result can be read.
  consuming func takeEncoder() -> Encoder { encoder }
}

/// Finds the best animation that fits a size limit, by encoding its stored frames repeatedly.
///
/// The quality of a lossy WebP is lowered, or the number of colors of a GIF's palettes. The stage that owns this value
/// encodes the first trial while rows arrive, and stores them here.
struct FrameSearch {
  private let limit: ByteLimit
  private let budget: ImageBudget
  private let first: EncoderOptions
  /// The frames; `nil` if a result cannot be made smaller.
  let store: FrameStore?

  /// - `encoder`: The options of the first trial.
  init(_ limit: ByteLimit, encoder: EncoderOptions, budget: ImageBudget) throws(PipelineError) {
    self.limit = limit
    self.budget = budget
    first = encoder
    store = encoder.canShrinkFrames ? try FrameStore(encoder, budget: budget) : nil
  }

  /// Returns an upper bound of the bytes that the trials charge, including their encoders.
  static func estimatedByteCount(_ encoder: EncoderOptions, limit: ByteLimit) throws(CodecError) -> UInt64 {
    let encoding = try encoder.estimatedByteCount()
    guard encoder.canShrinkFrames else { return encoding }
    // The best result so far, and another one with `never_larger`, are spooled.
    let finished = UInt64(encoder.spill == nil ? 33 << 20 : 5 << 18) * (limit.neverLarger == nil ? 1 : 2)
    return encoding + finished + (try FrameStore.estimatedByteCount(encoder))
  }

  /// Returns the best result; must be called once the first trial and the store are complete.
  /// - Throws: `limitExceeded` with the size of the smallest trial, `cancelled`.
  func settle(
    _ trial: consuming EncodedFrames, _ end: ImageEnd, _ buffer: PixelBuffer, _ allowance: WorkAllowance
  ) throws(PipelineError) -> EncodedFrames {
    var best = trial
    try store?.finish(allowance)
    if best.byteCount > limit.byteCount {
      let floor = Floor(quality: 1, colorCount: 2)
      var smallest = (options: best.options, byteCount: best.byteCount)
      guard let fit = try search(below: smallest, limit.byteCount, floor, &smallest, buffer, allowance) else {
        throw limit.unreachable(smallest.options, byteCount: smallest.byteCount)
      }
      best = fit
    }
    if let rule = limit.neverLarger, best.byteCount > end.inputByteCount {
      let floor = Floor(quality: rule.minQuality, colorCount: ColorSearch.minCountOfSmaller)
      var smallest = (options: best.options, byteCount: best.byteCount)
      if let smaller = try search(below: smallest, end.inputByteCount, floor, &smallest, buffer, allowance) {
        best = smaller
      }
    }
    return best
  }

  /// The limits to the search.
  private struct Floor {
    let quality: Int
    let colorCount: Int
  }

  /// Encodes trials until the best one with at most `byteCount` bytes is found.
  private func search(
    below found: (options: EncoderOptions, byteCount: UInt64), _ byteCount: UInt64, _ floor: Floor,
    _ smallest: inout (options: EncoderOptions, byteCount: UInt64), _ buffer: PixelBuffer,
    _ allowance: WorkAllowance
  ) throws(PipelineError) -> EncodedFrames? {
    guard store != nil else { return nil }
    var best: EncodedFrames?
    func compress(_ options: EncoderOptions) throws(PipelineError) -> UInt64 {
      let trial = try encode(options, buffer, allowance)
      let size = trial.byteCount
      if size < smallest.byteCount { smallest = (options, size) }
      if size <= byteCount { best = consume trial }
      return size
    }
    if let curve = found.options.format.traits.output?.sizeCurve {
      var search = QualitySearch(
        scale: QualityScale(curve: curve, isFine: false), limit: byteCount, floor: min(floor.quality, first.quality),
        trialsToFloor: ByteLimit.maxTrials)
      search.note(quality: found.options.quality, byteCount: found.byteCount)
      while let quality = search.next {
        search.note(quality: quality, byteCount: try compress(limit.options(first, quality: quality)))
      }
    } else {
      var search = ColorSearch(below: found.options.gif.colorCount, floor: floor.colorCount)
      while let colorCount = search.next {
        var options = first
        options.gif.colorCount = colorCount
        search.note(fits: try compress(options) <= byteCount)
      }
    }
    return best.take()
  }

  private func encode(
    _ options: EncoderOptions, _ buffer: PixelBuffer, _ allowance: WorkAllowance
  ) throws(PipelineError) -> EncodedFrames {
    let budget = budget
    var encoder = try withCodecErrors { () throws(CodecError) in try Encoder(options: options, budget: budget) }
    try store?.write(to: &encoder, buffer, allowance)
    return EncodedFrames(encoder, options: options)
  }
}

extension EncoderOptions {
  /// Whether a result with several frames can be encoded with fewer bytes.
  var canShrinkFrames: Bool { isLossy || format.traits.output?.reducesColors == true }
}
