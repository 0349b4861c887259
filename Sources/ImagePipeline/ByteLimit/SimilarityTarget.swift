internal import ImageCodecs
internal import ImageKernels

/// The similarity to its uncompressed rows that a result must reach, and the highest quality that may be used for it.
struct SimilarityTarget: Sendable, Hashable {
  /// The score to reach, 30 to 100.
  let score: Double
  /// The maximum quality, 1 to 100.
  let maxQuality: Int
  /// Whether the search chooses the size of chroma planes, up to a quality that has them at full size by default.
  var choosesChroma = false
}

extension SimilarityTarget {
  /// Returns the target of a configuration; `nil` if it has none, or if the result cannot be measured.
  init?(_ configuration: ProcessingConfiguration, encoder: EncoderOptions) {
    guard let score = configuration.targetSimilarity, encoder.isLossy,
      Self.isMeasurable(PixelSize(width: encoder.width, height: encoder.height))
    else { return nil }
    self.score = score
    maxQuality = max(1, Int(((configuration.compressionQuality ?? 1) * 100).rounded()))
    choosesChroma =
      encoder.adaptsChroma && configuration.maxBytes == nil && maxQuality >= EncoderOptions.minQualityOfFullChroma
  }

  /// Whether the similarity of a result of this size can be measured.
  static func isMeasurable(_ size: PixelSize) -> Bool {
    min(size.width, size.height) >= ImageSimilarity.minSide
  }

  /// The quality at which most photographs reach the score, with reduced chroma if the search chooses it.
  var expectedQuality: Int {
    let maxQuality = choosesChroma ? EncoderOptions.minQualityOfFullChroma - 1 : maxQuality
    let known: [(score: Double, quality: Double)] = [(30, 20), (60, 50), (78, 80), (90, 95), (100, 100)]
    let next = known.firstIndex { $0.score >= score } ?? known.count - 1
    guard next > 0 else { return min(maxQuality, Int(known[0].quality)) }
    let (low, high) = (known[next - 1], known[next])
    let share = (score - low.score) / (high.score - low.score)
    return min(maxQuality, Int((low.quality + share * (high.quality - low.quality)).rounded()))
  }

  /// Returns the warnings for a result with a similarity, or without one because its dimensions were reduced.
  func warnings(_ similarity: Double?, _ options: EncoderOptions) -> [Warning] {
    guard let similarity, similarity < score else { return [] }
    let field = options.quality < maxQuality ? "max_bytes" : "compression_quality"
    return [.missedTargetSimilarity(similarity, becauseOf: field)]
  }
}

extension EncoderOptions {
  /// Returns the options of the first trial, if the configuration has a target for the similarity.
  /// - Throws: `invalidField` if the result has no quality that could be lowered, `unservedField` if this build cannot
  ///   decode it.
  func aimed(_ configuration: ProcessingConfiguration) throws(PipelineError) -> EncoderOptions {
    guard configuration.targetSimilarity != nil else { return self }
    guard isLossy else {
      // Of the accepted formats, a lossless one is left.
      if configuration.preferredFormat == .auto { return self }
      throw PipelineError(
        .invalidField,
        "target_similarity needs a lossy format, but the result is lossless \(format.rawValue); request JPEG, AVIF, "
          + "or lossy WebP or JPEG XL", field: "target_similarity")
    }
    guard format.isDecodable else {
      throw PipelineError(
        .unservedField,
        "this worker was built without the decoder for \(format.rawValue), which target_similarity needs; request "
          + "another format", field: "target_similarity")
    }
    guard let target = SimilarityTarget(configuration, encoder: self) else { return self }
    var options = self
    options.quality = target.expectedQuality
    // The rows are compared with chroma at full size, so the encoder reduces it.
    if pixelFormat == .ycc8 { options.pixelFormat = .rgb8 }
    if adaptsChroma { options.subsampling = options.quality < Self.minQualityOfFullChroma ? .quarter : .full }
    return options
  }
}

extension PipelineError {
  /// Creates the error for an image whose working set exceeds the memory limit, with the field that needs the memory if
  /// there is one.
  init(exceeding memory: UInt64, _ plan: ImagePlan) {
    self.init(
      exceeding: "image_memory_limit", limit: memory, value: plan.workingSetByteCount, unit: "bytes of memory")
    if plan.plans.contains(where: { $0.byteLimit?.similarity != nil }) {
      field = "target_similarity"
      message += "; target_similarity buffers the whole result, so request a smaller one"
    } else if let format = plan.plans.map(\.encoder.format).first(where: { ![.jpeg, .png, .raw].contains($0) }) {
      message += "; the encoder of \(format.rawValue) buffers the whole result, so request a smaller one, JPEG or PNG"
    }
  }
}
