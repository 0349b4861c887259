internal import ImageCodecs

/// Finds the best result that keeps a limit of bytes, by compressing the held result again and again.
///
/// The first trial is made by the stage that owns this while rows arrive.
struct ByteTarget {
  /// A result that is done.
  struct Result {
    let options: EncoderOptions
    let bytes: CompressedBytes
  }

  private let limit: ByteLimit
  private let budget: ImageBudget
  private var first: EncoderOptions
  private let image: BufferedImage?
  private var trial: CompressedBytes
  private var best: Result?
  private var trialCount = 1
  private var smallest: (options: EncoderOptions, byteCount: UInt64)?

  init(_ limit: ByteLimit, encoder: EncoderOptions, budget: ImageBudget) throws(PipelineError) {
    self.limit = limit
    self.budget = budget
    first = encoder
    image = try withCodecErrors { () throws(CodecError) in
      limit.buffersImage(encoder) ? try BufferedImage(options: encoder, budget: budget) : nil
    }
    trial = CompressedBytes(limit: limit.byteCount, budget: budget)
  }

  func hold(_ strip: borrowing Strip) { image?.append(strip) }

  /// Takes the next bytes of a trial.
  mutating func collect(_ bytes: RawSpan) throws(PipelineError) { try trial.append(bytes) }

  /// The best result, once the first trial is over.
  /// - `trailingMetadata`: what was put behind the rows of the first, where its format can have it there.
  /// - `buffer`: what encoders are read into.
  /// - Throws: `limitExceeded` naming the fewest bytes that were reached, `cancelled`.
  mutating func settle(
    trailingMetadata: [UInt8], _ buffer: PixelBuffer, _ allowance: WorkAllowance
  ) throws(PipelineError) -> Result {
    note(first)
    if first.format.traits.hasTrailingMetadata, !trailingMetadata.isEmpty { first.exif = trailingMetadata }
    if let best { return best }
    let quality = try searchQuality(buffer, allowance)
    if best == nil, limit.allowsSmaller { try searchSize(quality: quality, buffer, allowance) }
    if let best { return best }
    throw unreachable
  }

  /// - Returns: the last quality tried, which is the least that may be when nothing fits; the first's where it is lossless.
  private mutating func searchQuality(
    _ buffer: PixelBuffer, _ allowance: WorkAllowance
  ) throws(PipelineError) -> Int {
    guard first.isLossy, let curve = first.format.traits.output?.sizeCurve else { return first.quality }
    let floor = limit.allowsSmaller ? min(first.quality, ByteLimit.leastQualityBeforeSize) : 1
    var search = QualitySearch(
      curve: curve, limit: limit.byteCount, floor: floor,
      trialsToFloor: limit.allowsSmaller ? 3 : ByteLimit.maxTrials)
    search.note(quality: first.quality, byteCount: trial.byteCount)
    var last = first.quality
    while let quality = search.next {
      try compress(limit.options(first, quality: quality), image, buffer, allowance)
      search.note(quality: quality, byteCount: trial.byteCount)
      last = quality
    }
    return last
  }

  private mutating func searchSize(
    quality: Int, _ buffer: PixelBuffer, _ allowance: WorkAllowance
  ) throws(PipelineError) {
    var options = limit.options(first, quality: quality)
    let size = PixelSize(width: first.width, height: first.height)
    var search = SizeSearch(limit: limit.byteCount, size: size)
    search.note(size, byteCount: trial.byteCount)
    guard let image else { return }
    while let next = search.next(trialsLeft: ByteLimit.maxTrials - trialCount) {
      try allowance.check()
      (options.width, options.height) = (next.width, next.height)
      let smaller = try withCodecErrors { () throws(CodecError) in
        try image.scaled(options)
      }
      try compress(options, smaller, buffer, allowance)
      search.note(next, byteCount: trial.byteCount)
    }
  }

  private mutating func compress(
    _ options: EncoderOptions, _ image: BufferedImage?, _ buffer: PixelBuffer, _ allowance: WorkAllowance
  ) throws(PipelineError) {
    guard let image else {
      throw PipelineError(.internalDefect, "a result must be compressed again but is not buffered")
    }
    trialCount += 1
    trial = CompressedBytes(limit: limit.byteCount, budget: budget)
    let budget = budget
    var encoder = try withCodecErrors { () throws(CodecError) in try Encoder(options: options, budget: budget) }
    try image.write(options: options) { (strip) throws(PipelineError) in
      try allowance.check()
      do throws(CodecError) { try encoder.write(strip) } catch { throw PipelineError(error) }
      try encoder.drain(buffer) { (bytes) throws(PipelineError) in try collect(bytes) }
    }
    do { try encoder.finish() } catch { throw PipelineError(error) }
    try encoder.drain(buffer) { (bytes) throws(PipelineError) in try collect(bytes) }
    note(options)
  }

  private mutating func note(_ options: EncoderOptions) {
    // Trials come nearer to the limit: one that fits is better than those that fitted before.
    if trial.fits { best = Result(options: options, bytes: trial) }
    if trial.byteCount < smallest?.byteCount ?? .max { smallest = (options, trial.byteCount) }
  }

  private var unreachable: PipelineError {
    let (options, byteCount) = smallest ?? (first, 0)
    let quality = options.isLossy ? " at quality \(Double(options.quality) / 100)" : ""
    return PipelineError(
      .limitExceeded,
      "max_bytes is \(limit.byteCount), but the smallest result has \(byteCount) bytes: "
        + "\(options.format.rawValue) of \(options.width)x\(options.height)\(quality)",
      field: "max_bytes", limit: PipelineError.Limit(name: "max_bytes", limit: limit.byteCount, value: byteCount))
  }
}
