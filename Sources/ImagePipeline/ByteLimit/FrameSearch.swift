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
/// The quality of a lossy WebP is lowered, or the number of colors of a GIF's palettes; then, if that is allowed, frames are
/// left out. The stage that owns this value encodes the first trial while rows arrive, and stores them here.
struct FrameSearch {
  /// The distances of the frames that stay when frames are left out.
  private static let intervals = [2, 3, 4, 6, 8]
  private let limit: ByteLimit
  private let budget: ImageBudget
  private let first: EncoderOptions
  /// The frames; `nil` if a result cannot be made smaller.
  let store: FrameStore?

  /// - `encoder`: The options of the first trial.
  init(_ limit: ByteLimit, encoder: EncoderOptions, budget: ImageBudget) throws(CodecError) {
    self.limit = limit
    self.budget = budget
    first = encoder
    store = encoder.canShrinkFrames || limit.allowsLowerFrameRate ? try FrameStore(encoder, budget: budget) : nil
  }

  /// Returns an upper bound of the bytes that the trials charge, including their encoders.
  static func estimatedByteCount(_ encoder: EncoderOptions, limit: ByteLimit) throws(CodecError) -> UInt64 {
    let encoding = try encoder.estimatedByteCount()
    guard encoder.canShrinkFrames || limit.allowsLowerFrameRate else { return encoding }
    // The first trial, the best result so far, and others with `never_larger` and fewer frames, are spooled.
    let count = 2 + (limit.neverLarger == nil ? 0 : 1) + (limit.allowsLowerFrameRate ? 1 : 0)
    let finished = UInt64(encoder.spill == nil ? 33 << 20 : 5 << 18) * UInt64(count)
    return encoding + finished + (try FrameStore.estimatedByteCount(encoder))
  }

  /// Returns the best result; must be called once the first trial and the store are complete.
  /// - Throws: `limitExceeded` with the size of the smallest trial, `cancelled`.
  func settle(
    _ trial: consuming EncodedFrames, _ end: ImageEnd, _ buffer: PixelBuffer, _ allowance: WorkAllowance
  ) throws(PipelineError) -> EncodedFrames {
    var best = trial
    try store?.encoder.finish(within: allowance)
    if best.byteCount > limit.byteCount {
      var smallest = (options: best.options, byteCount: best.byteCount)
      guard let fit = try fit(&smallest, buffer, allowance) else {
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
    static let lowest = Floor(quality: 1, colorCount: ColorSearch.minCount)
    /// The limits for all frames, before some are left out.
    static let ofAllFrames = Floor(
      quality: ByteLimit.minQualityBeforeSize, colorCount: ColorSearch.minCountOfSmaller)

    let quality: Int
    let colorCount: Int
  }

  /// Finds the best animation within the limit; the first trial, which is `smallest`, is larger.
  private func fit(
    _ smallest: inout (options: EncoderOptions, byteCount: UInt64), _ buffer: PixelBuffer, _ allowance: WorkAllowance
  ) throws(PipelineError) -> EncodedFrames? {
    let trial = smallest
    guard limit.allowsLowerFrameRate else {
      return try search(below: trial, limit.byteCount, .lowest, &smallest, buffer, allowance)
    }
    if let whole = try search(below: trial, limit.byteCount, .ofAllFrames, &smallest, buffer, allowance) {
      return whole
    }
    let (last, allFrames) = (Self.intervals.last ?? 1, smallest.byteCount)
    for interval in Self.intervals where allFrames / UInt64(interval) <= limit.byteCount || interval == last {
      if let thinned = try thin(interval, .ofAllFrames, &smallest, buffer, allowance) { return thinned }
    }
    return first.canShrinkFrames ? try thin(last, .lowest, &smallest, buffer, allowance) : nil
  }

  /// Leaves out frames, and finds the best animation of the others within the limit.
  private func thin(
    _ interval: Int, _ floor: Floor, _ smallest: inout (options: EncoderOptions, byteCount: UInt64),
    _ buffer: PixelBuffer, _ allowance: WorkAllowance
  ) throws(PipelineError) -> EncodedFrames? {
    if first.canShrinkFrames {
      var lowest = limit.options(first, quality: min(floor.quality, first.quality))
      lowest.gif.colorCount = min(floor.colorCount, first.gif.colorCount)
      let byteCount = try encode(lowest, interval: interval, buffer, allowance).byteCount
      if byteCount < smallest.byteCount { smallest = (lowest, byteCount) }
      guard byteCount <= limit.byteCount else { return nil }
    }
    let atFirst = try encode(first, interval: interval, buffer, allowance)
    if atFirst.byteCount < smallest.byteCount { smallest = (first, atFirst.byteCount) }
    if atFirst.byteCount <= limit.byteCount { return atFirst }
    let found = (first, atFirst.byteCount)
    return try search(below: found, limit.byteCount, floor, interval: interval, &smallest, buffer, allowance)
  }

  /// Encodes trials until the best one with at most `byteCount` bytes is found.
  private func search(
    below found: (options: EncoderOptions, byteCount: UInt64), _ byteCount: UInt64, _ floor: Floor,
    interval: Int = 1, _ smallest: inout (options: EncoderOptions, byteCount: UInt64), _ buffer: PixelBuffer,
    _ allowance: WorkAllowance
  ) throws(PipelineError) -> EncodedFrames? {
    guard store != nil, first.canShrinkFrames else { return nil }
    var best: EncodedFrames?
    func compress(_ options: EncoderOptions) throws(PipelineError) -> UInt64 {
      let trial = try encode(options, interval: interval, buffer, allowance)
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
    _ options: EncoderOptions, interval: Int, _ buffer: PixelBuffer, _ allowance: WorkAllowance
  ) throws(PipelineError) -> EncodedFrames {
    let budget = budget
    var encoder = try withCodecErrors { () throws(CodecError) in try Encoder(options: options, budget: budget) }
    try store?.write(to: &encoder, interval: interval, buffer, allowance)
    return EncodedFrames(encoder, options: options)
  }
}

extension EncoderOptions {
  /// Whether a result with several frames can be encoded with fewer bytes.
  var canShrinkFrames: Bool { isLossy || format.traits.output?.reducesColors == true }
}
