internal import ImageCodecs

/// Finds the best result that fits a size limit, or the smallest that reaches a similarity, by encoding the buffered
/// image repeatedly.
///
/// The stage that owns this value encodes the first trial while rows arrive.
struct ByteTarget {
  /// A complete encoded result.
  struct Result {
    let options: EncoderOptions
    let bytes: CompressedBytes
    /// The similarity to the uncompressed rows, if there is a target for it.
    let similarity: Double?
  }

  private var limit: ByteLimit
  private let budget: ImageBudget
  private var first: EncoderOptions
  /// The rows for later trials, if these need them.
  let image: BufferedImage?
  /// The maximum size of the current trial in bytes.
  private var maxByteCount: UInt64
  /// The current trial as far as it is encoded.
  private(set) var trial: CompressedBytes
  /// The similarity of the current trial, if it was measured.
  private var score: Double?
  private var best: Result?
  private var trialCount = 1
  private var smallest: (options: EncoderOptions, byteCount: UInt64)?
  /// The formats that were compared, the smallest first.
  private(set) var formatTrials: [FormatTrial] = []

  init(_ limit: ByteLimit, encoder: EncoderOptions, budget: ImageBudget) throws(PipelineError) {
    self.limit = limit
    self.budget = budget
    maxByteCount = limit.byteCount
    first = encoder
    image = try withCodecErrors { () throws(CodecError) in
      limit.buffersImage(encoder) ? try BufferedImage(options: encoder, budget: budget) : nil
    }
    trial = CompressedBytes(limit: limit.byteCount, budget: budget)
  }

  /// Returns the best result; must be called once the first trial is complete.
  /// - Parameters:
  ///   - end: The end of the image. Its trailing metadata was appended to the first trial, if its format allows that.
  ///   - buffer: The buffer for the output of encoders.
  ///   - allowance: Checked while encoding.
  /// - Returns: The best result that fits.
  /// - Throws: `limitExceeded` with the size of the smallest trial, `cancelled`.
  mutating func settle(
    _ end: ImageEnd, _ buffer: PixelBuffer, _ allowance: WorkAllowance
  ) throws(PipelineError) -> Result {
    let usesSample = limit.usesSample(first)
    let encoded = usesSample ? try predict(buffer, allowance) : nil
    if first.format.traits.hasTrailingMetadata, !end.trailingMetadata.isEmpty {
      first.metadata.exif = end.trailingMetadata
    }
    if let encoded, first.metadata == EmbeddedMetadata(), limit.byteCount == .max {
      trial = encoded
    } else if usesSample, let image {
      try encode(first, image, buffer, allowance)
    }
    try finish(first, allowance)
    var quality = first.quality
    if let similarity = limit.similarity {
      quality = try searchSimilarity(similarity, buffer, allowance)
    } else if best == nil {
      quality = try searchQuality(buffer, allowance)
    }
    if best == nil, limit.allowsSmaller { try searchSize(quality: quality, buffer, allowance) }
    if let rule = limit.neverLarger, end.inputByteCount < rule.sufficientByteCount {
      try searchSmaller(rule, end.inputByteCount, buffer, allowance)
    }
    guard let best else {
      let (options, byteCount) = smallest ?? (first, 0)
      throw limit.unreachable(options, byteCount: byteCount)
    }
    return best
  }

  /// Chooses the format and the quality of the first trial by a sample of the image.
  /// - Returns: That trial without metadata, if it was encoded.
  private mutating func predict(
    _ buffer: PixelBuffer, _ allowance: WorkAllowance
  ) throws(PipelineError) -> CompressedBytes? {
    guard let image else { return nil }
    if limit.choice?.opaque != nil, image.dropAlpha() { limit.noteOpaqueRows() }
    let ratio = limit.choice == nil ? ImageSample.ratios.score : ImageSample.ratios.formats
    let search = try SampleSearch(image, ratio: ratio, buffer, allowance)
    if let choice = limit.choice {
      let metadata = first.metadata
      let chosen = try search.choose(choice, limit, roomByteCount: UInt64(max(0, budget.limit - budget.used)))
      (first, formatTrials) = (chosen.options, chosen.compared)
      first.metadata = metadata
      limit = limit.applied(to: first, maxScore: chosen.maxScore)
      return chosen.bytes
    }
    if let target = limit.similarity { first = try search.options(first, target: target, limit) }
    return nil
  }

  /// Encodes trials at lower qualities until the best one that fits is found.
  /// - Returns: The quality of the last trial, which is the minimum quality if nothing fits; the first trial's quality
  ///   for a lossless format.
  private mutating func searchQuality(
    _ buffer: PixelBuffer, _ allowance: WorkAllowance
  ) throws(PipelineError) -> Int {
    let floor = limit.allowsSmaller ? min(first.quality, ByteLimit.minQualityBeforeSize) : 1
    return try searchQuality(
      from: first, trial.byteCount, floor: floor, trialsToFloor: limit.allowsSmaller ? 3 : ByteLimit.maxTrials, buffer,
      allowance)
  }

  /// Encodes trials at lower qualities than an earlier one until the best one that fits is found.
  ///
  /// The quality does not fall below `floor`, which is tried within `trialsToFloor` trials if nothing fits.
  private mutating func searchQuality(
    from found: EncoderOptions, _ byteCount: UInt64, floor: Int, trialsToFloor: Int, _ buffer: PixelBuffer,
    _ allowance: WorkAllowance
  ) throws(PipelineError) -> Int {
    guard found.isLossy, let image, let curve = found.format.traits.output?.sizeCurve else { return found.quality }
    let scale = QualityScale(curve: curve, isFine: true)
    var last = scale.step(found)
    if curve == .libjpeg {
      let estimates = SizeEstimates(image, limit: limit, encoder: first, scale: scale)
      var search = EstimatedSearch(
        scale: scale, estimates: estimates, limit: maxByteCount, floor: scale.step(floor), trialsToFloor: trialsToFloor)
      search.note(step: last, byteCount: byteCount)
      while let step = try withCodecErrors({ () throws(CodecError) in try search.next() }) {
        try compress(scale.options(first, step: step, limit: limit), image, buffer, allowance)
        search.note(step: step, byteCount: trial.byteCount)
        last = step
      }
      return last / scale.steps
    }
    var search = QualitySearch(scale: scale, limit: maxByteCount, floor: floor, trialsToFloor: trialsToFloor)
    search.note(quality: last, byteCount: byteCount)
    while let quality = search.next {
      try compress(limit.options(first, quality: quality), image, buffer, allowance)
      search.note(quality: quality, byteCount: trial.byteCount)
      last = quality
    }
    return last
  }

  /// Encodes trials at other qualities until the smallest one that reaches the similarity is found.
  /// - Returns: The quality of the last trial, which is the minimum quality if nothing fits the size limit.
  private mutating func searchSimilarity(
    _ target: SimilarityTarget, _ buffer: PixelBuffer, _ allowance: WorkAllowance
  ) throws(PipelineError) -> Int {
    guard let curve = first.format.traits.output?.sizeCurve else { return first.quality }
    // Between two limits, few of the fine steps are right, and the trials would not suffice to find one.
    let scale = QualityScale(curve: curve, isFine: limit.byteCount == .max)
    let floor = limit.allowsSmaller ? min(target.maxQuality, ByteLimit.minQualityBeforeSize) : 1
    var limit = limit
    var search = SimilaritySearch(
      scale: scale, target: target, limit: limit.byteCount, floor: scale.step(floor),
      hasFullChroma: first.subsampling == .full, isPredicted: limit.usesSample(first))
    var last = scale.step(first)
    search.note(quality: last, byteCount: trial.byteCount, score: score)
    while let step = search.next() {
      limit.hasFullChroma = target.choosesChroma && search.hasFullChroma
      try compress(scale.options(first, step: step, limit: limit), image, buffer, allowance)
      search.note(quality: step, byteCount: trial.byteCount, score: score)
      last = step
    }
    return last / scale.steps
  }

  /// Encodes trials at lower qualities until one has at most `byteCount` bytes; otherwise the result stays as it is.
  private mutating func searchSmaller(
    _ rule: NeverLarger, _ byteCount: UInt64, _ buffer: PixelBuffer, _ allowance: WorkAllowance
  ) throws(PipelineError) {
    // The best result itself must be free to go once a trial fits.
    guard let found = best.map({ (options: $0.options, size: $0.bytes.byteCount) }), found.size > byteCount,
      found.options.width == first.width
    else { return }
    maxByteCount = byteCount
    trial = CompressedBytes(limit: byteCount, budget: budget)
    _ = try searchQuality(
      from: found.options, found.size, floor: rule.minQuality, trialsToFloor: ByteLimit.maxTrials, buffer, allowance)
  }

  private mutating func searchSize(
    quality: Int, _ buffer: PixelBuffer, _ allowance: WorkAllowance
  ) throws(PipelineError) {
    var options = limit.options(first, quality: quality)
    let size = PixelSize(width: first.width, height: first.height)
    var search = SizeSearch(limit: limit.byteCount, size: size)
    search.note(size, byteCount: trial.byteCount)
    guard let image else { return }
    while let next = search.next(trialsLeft: limit.maxTrials - trialCount) {
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
    trial = CompressedBytes(limit: maxByteCount, budget: budget)
    try encode(options, image, buffer, allowance)
    try finish(options, allowance)
  }

  /// Encodes the current trial; the memory of its encoder is free afterwards.
  private mutating func encode(
    _ options: EncoderOptions, _ image: BufferedImage, _ buffer: PixelBuffer, _ allowance: WorkAllowance
  ) throws(PipelineError) {
    let trial = trial
    try image.encode(options, buffer, allowance) { (bytes) throws(PipelineError) in try trial.append(bytes) }
  }

  /// Measures the current trial, and keeps it if it is the best so far.
  private mutating func finish(_ options: EncoderOptions, _ allowance: WorkAllowance) throws(PipelineError) {
    score = nil
    if limit.similarity != nil, trial.fits, let image, image.options.width == options.width,
      image.options.height == options.height
    {
      score = try SimilarityTrial.score(of: trial, options: options, image: image, budget: budget, allowance)
    }
    if trial.fits, isBest { best = Result(options: options, bytes: trial, similarity: score) }
    if trial.byteCount < smallest?.byteCount ?? .max { smallest = (options, trial.byteCount) }
  }

  /// Whether the current trial, which fits, is better than earlier ones.
  private var isBest: Bool {
    // Trials approach a size limit, so a result that fits is better than earlier ones that fit.
    guard let target = limit.similarity, let score, let best, let other = best.similarity else { return true }
    if score >= target.score, other >= target.score { return trial.byteCount < best.bytes.byteCount }
    return score > other
  }
}
