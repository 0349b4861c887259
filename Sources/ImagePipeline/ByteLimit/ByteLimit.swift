internal import ImageCodecs
internal import ImageKernels

/// The maximum size of a result in bytes, the similarity that it must reach, and the properties that may be reduced for
/// these.
struct ByteLimit: Sendable, Hashable {
  /// The maximum number of trial encodes of one image, including the first.
  static let maxTrials = 6
  /// The minimum quality, 1 to 100, if the dimensions may be reduced instead.
  static let minQualityBeforeSize = 40

  /// The maximum size of the result in bytes; the maximum number without a limit.
  let byteCount: UInt64
  /// The similarity that the result must reach at the lowest possible quality, if there is a target.
  private(set) var similarity: SimilarityTarget?
  /// The formats of which the result has the one that makes it the smallest, if there is a choice.
  private(set) var choice: FormatChoice?
  /// The rule that lowers the quality of a result that is larger than its image, if there is one.
  private(set) var neverLarger: NeverLarger?
  /// Whether the dimensions may be reduced.
  let allowsSmaller: Bool
  /// Whether frames of an animation may be left out.
  let allowsLowerFrameRate: Bool
  /// Whether chroma subsampling depends on the quality, because the configuration does not specify it.
  private(set) var adaptsChroma: Bool
  /// Whether such chroma has its full size at every quality, because the search for the similarity chose that.
  var hasFullChroma = false

  /// Creates the limit of a configuration; returns `nil` if it has none.
  init?(
    _ configuration: ProcessingConfiguration, encoder: EncoderOptions, neverLarger: NeverLarger? = nil,
    choice: FormatChoice? = nil
  ) {
    similarity = SimilarityTarget(configuration, encoder: encoder)
    self.neverLarger = neverLarger?.obstacle == nil ? neverLarger : nil
    self.choice = choice
    guard configuration.maxBytes != nil || similarity != nil || self.neverLarger != nil || choice != nil else {
      return nil
    }
    byteCount = configuration.maxBytes ?? .max
    allowsSmaller = configuration.maxBytes != nil && configuration.allowSmallerDimensions ?? false
    allowsLowerFrameRate = configuration.maxBytes != nil && configuration.allowLowerFrameRate ?? false
    adaptsChroma = encoder.adaptsChroma
  }

  /// Returns whether the first trial is final although it is not complete.
  /// - `received`: The number of bytes of the file that have arrived.
  func isSettled(received: UInt64) -> Bool {
    guard byteCount == .max, similarity == nil, choice == nil, let neverLarger else { return false }
    return received >= neverLarger.sufficientByteCount
  }

  /// The maximum number of trials, including those of smaller dimensions.
  var maxTrials: Int { Self.maxTrials + (similarity == nil ? 0 : SimilaritySearch.maxTrials) }

  /// Whether the image must be buffered for a second trial.
  func buffersImage(_ encoder: EncoderOptions) -> Bool { encoder.isLossy || allowsSmaller || choice != nil }

  /// Whether the first trial waits for all rows, of which a sample decides its format or its quality.
  func usesSample(_ encoder: EncoderOptions) -> Bool {
    choice != nil
      || similarity != nil && ImageSample.isSmaller(PixelSize(width: encoder.width, height: encoder.height))
  }

  /// Makes the choice that of opaque rows, if they have alpha.
  mutating func noteOpaqueRows() { choice = choice?.opaque ?? choice }

  /// Returns the limit of a result that an encoder of the choice writes.
  /// - `maxScore`: The maximum similarity to reach, which `compression_quality` sets: it is the quality of a JPEG.
  func applied(to encoder: EncoderOptions, maxScore: Double = 100) -> ByteLimit {
    var limit = self
    limit.adaptsChroma = encoder.adaptsChroma
    limit.neverLarger = neverLarger?.applied(to: encoder)
    limit.similarity =
      encoder.isLossy
      ? similarity.map {
        let choosesChroma = encoder.adaptsChroma && byteCount == .max
        return SimilarityTarget(score: min($0.score, maxScore), maxQuality: 100, choosesChroma: choosesChroma)
      } : nil
    return limit
  }

  /// Returns the options of the first trial at another quality.
  func options(_ encoder: EncoderOptions, quality: Int) -> EncoderOptions {
    var options = encoder
    options.quality = quality
    guard adaptsChroma else { return options }
    if quality < EncoderOptions.minQualityOfFullChroma, !hasFullChroma {
      options.subsampling = .quarter
    } else if similarity != nil {
      options.subsampling = .full
    }
    return options
  }

  /// Returns the error for a result whose smallest trial had `byteCount` bytes.
  /// - `options`: The options of that trial.
  func unreachable(_ options: EncoderOptions, byteCount smallest: UInt64) -> PipelineError {
    let quality = options.reportedQuality.map { " at quality \($0)" } ?? ""
    return PipelineError(
      .limitExceeded,
      "max_bytes is \(byteCount), but the smallest result has \(smallest) bytes: "
        + "\(options.format.rawValue) of \(options.width)x\(options.height)\(quality)",
      field: "max_bytes", limit: PipelineError.Limit(name: "max_bytes", limit: byteCount, value: smallest))
  }

  /// Returns an upper bound of the bytes that the trials charge, including their encoders.
  func estimatedByteCount(encoder: EncoderOptions) throws(CodecError) -> UInt64 {
    if encoder.hasFrames { return try FrameSearch.estimatedByteCount(encoder, limit: self) }
    guard let choice else { return try trialsByteCount(encoder: encoder) }
    // The rows keep the room of their alpha.
    let alphaByteCount = UInt64(encoder.width) * UInt64(encoder.height)
    var byteCount = try trialsByteCount(of: choice)
    if let opaque = choice.opaque { byteCount = max(byteCount, try trialsByteCount(of: opaque) + alphaByteCount) }
    return byteCount
  }

  private func trialsByteCount(of choice: FormatChoice) throws(CodecError) -> UInt64 {
    var byteCount: UInt64 = 0
    for encoder in choice.candidates + (choice.reference.map { [$0] } ?? []) {
      let converting =
        encoder.pixelFormat == choice.rows
        ? 0 : PixelConverter.estimatedByteCount(width: encoder.width, to: encoder.pixelFormat)
      byteCount = max(byteCount, try applied(to: encoder).trialsByteCount(encoder: encoder) + UInt64(converting))
    }
    return byteCount
  }

  private func trialsByteCount(encoder: EncoderOptions) throws(CodecError) -> UInt64 {
    let finest = similarity.map { options(encoder, quality: $0.maxQuality) } ?? encoder
    var encoding = max(try encoder.estimatedByteCount(), try finest.estimatedByteCount())
    // At most two results are buffered: the best one, and the one that is being encoded.
    let result = min(byteCount, try finest.maxByteCount()) + UInt64(CompressedBytes.chunkByteCount) * 2
    let hasLimit = byteCount != .max || similarity != nil
    let other = hasLimit ? result : min(result, neverLarger?.sufficientByteCount ?? result)
    guard buffersImage(encoder) else { return encoding + result }
    if usesSample(encoder) { encoding = max(encoding, try ImageSample.estimatedByteCount(finest)) }
    encoding += try SizeEstimates.estimatedByteCount(encoder, limit: self)
    if similarity != nil { encoding = max(encoding, UInt64(SimilarityTrial.estimatedByteCount(encoder))) }
    var buffered = BufferedImage.estimatedByteCount(encoder, halvesChroma: adaptsChroma)
    if allowsSmaller {
      buffered += BufferedImage.smallerByteCount(encoder)
      // Some encoders need more memory for a smaller image.
      var smaller = encoder
      (smaller.width, smaller.height) = (min(encoder.width, 2048), min(encoder.height, 2048))
      encoding = max(encoding, try smaller.estimatedByteCount())
    }
    return encoding + result + other + UInt64(buffered)
  }
}

extension EncoderOptions {
  /// The quality, 1 to 100, below which chroma is subsampled unless the configuration specifies otherwise.
  static let minQualityOfFullChroma = 90

  /// Whether chroma subsampling depends on the quality, because the configuration does not specify it.
  var adaptsChroma: Bool { (format.traits.output?.subsamplesChroma ?? false) && !asksForChroma }
}
