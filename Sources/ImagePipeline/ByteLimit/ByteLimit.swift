internal import ImageCodecs

/// What a result may weigh, and what may be given up for that.
struct ByteLimit: Sendable, Hashable {
  /// Trial encodes of one image, the first included.
  static let maxTrials = 6
  /// What quality does not go below where the result may become smaller instead.
  static let leastQualityBeforeSize = 40

  let byteCount: UInt64
  let allowsSmaller: Bool
  /// Chroma planes go with the quality, as nothing else was asked for.
  let adaptsChroma: Bool

  /// `nil` for a configuration without a limit.
  init?(_ configuration: ProcessingConfiguration, encoder: EncoderOptions) {
    guard let byteCount = configuration.maxBytes else { return nil }
    self.byteCount = byteCount
    allowsSmaller = configuration.allowSmallerDimensions ?? false
    adaptsChroma =
      (encoder.format.traits.output?.subsamplesChroma ?? false) && !encoder.asksForChroma
  }

  /// Whether the image must be there for a second trial.
  func buffersImage(_ encoder: EncoderOptions) -> Bool { encoder.isLossy || allowsSmaller }

  /// The first trial's options at another quality.
  func options(_ encoder: EncoderOptions, quality: Int) -> EncoderOptions {
    var options = encoder
    options.quality = quality
    if adaptsChroma, quality < EncoderOptions.leastQualityOfFullChroma { options.subsampling = .quarter }
    return options
  }

  /// An upper bound of what the trials charge, their encoders included.
  func estimatedByteCount(encoder: EncoderOptions) throws(CodecError) -> UInt64 {
    var encoding = try encoder.estimatedByteCount()
    // Two results are held at most: the best that fits, and the one that is being made.
    let result = min(byteCount, try encoder.maxByteCount()) + UInt64(CompressedBytes.chunkByteCount) * 2
    guard buffersImage(encoder) else { return encoding + result }
    var buffered = BufferedImage.estimatedByteCount(encoder, halvesChroma: adaptsChroma)
    if allowsSmaller {
      buffered += BufferedImage.smallerByteCount(encoder)
      // Some encoders hold more of a smaller image.
      var smaller = encoder
      (smaller.width, smaller.height) = (min(encoder.width, 2048), min(encoder.height, 2048))
      encoding = max(encoding, try smaller.estimatedByteCount())
    }
    return encoding + 2 * result + UInt64(buffered)
  }
}

extension EncoderOptions {
  /// Below it, chroma is subsampled unless something else is asked for.
  static let leastQualityOfFullChroma = 90
}
