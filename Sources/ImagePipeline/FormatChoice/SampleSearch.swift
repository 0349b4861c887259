internal import ImageCodecs

/// Predicts the format and the quality of a result from trials of a sample.
struct SampleSearch {
  /// The maximum number of trials in each format, unless all are far from their target.
  ///
  /// More would hardly improve what a sample predicts.
  private static let maxTrials = 2
  /// The minimum factor for the size at a lower score, as dithered images in AVIF hardly shrink.
  private static let minFactor = 0.7
  /// By how much the predicted quality aims above a target: the middle of the scores that need no other trial.
  private static let margin = 0.5
  /// The distance from the target at which a trial of the whole image is the result.
  private static let enough = 1.0
  /// By how much the score of a sampled JPEG is above that of the whole image, per square of its distance to 100.
  ///
  /// Edges between tiles hide its artifacts at large scales. Medians of 93 images; see Benchmarks/results/format-choice.md.
  private static let excess = 0.0025
  /// The maximum distance from the target of a trial by which a quality is predicted; of one that is compared with another
  /// format, if their sizes differ by less than a factor; and otherwise.
  private static let distances = (predicting: 2.5, near: 1.5, factor: 1.2, far: 5.0)
  /// The method of libwebp in trials that only compare formats.
  private static let quickMethod = 2
  /// By how much lossy WebP is larger than its tiles predict, and smaller than a quick trial of it.
  ///
  /// Medians of 53 images from 131,072 pixels on, and of 39 smaller ones; see Benchmarks/results/format-choice.md.
  private static let webPFactors = (tiles: 1.05, quick: 0.95)
  /// The minimum share of predictable pixels at which a lossless result may be smaller than a lossy one.
  ///
  /// Of 196 images, 28 are smaller without loss, all of which have more; of the others, 32 have more.
  private static let minPredictableShare = 0.65
  /// The maximum size of the PNG of a drawing, of which lossless WebP is tried, too: compared with the smallest lossy
  /// result, or in bytes per pixel.
  private static let drawing = (ratio: 2.0, density: 0.125)

  private let sample: ImageSample
  private let buffer: PixelBuffer
  private let allowance: WorkAllowance

  /// A trial of the sample.
  private struct Trial {
    let options: EncoderOptions
    /// Whether its encoder made less effort than its options request.
    let isQuick: Bool
    let byteCount: UInt64
    /// The similarity that the whole image probably has, at most 100; `nil` if it is lossless.
    let score: Double?
    /// The whole result, if it may be needed.
    let bytes: CompressedBytes?
  }

  /// - `ratio`: One of `ImageSample.ratios`.
  init(
    _ image: BufferedImage, ratio: Int, _ buffer: PixelBuffer, _ allowance: WorkAllowance
  ) throws(PipelineError) {
    sample = try withCodecErrors { () throws(CodecError) in try ImageSample(image, ratio: ratio) }
    self.buffer = buffer
    self.allowance = allowance
  }

  /// Returns an encoder's options with the quality at which the image probably reaches a target.
  func options(
    _ encoder: EncoderOptions, target: SimilarityTarget, _ limit: ByteLimit
  ) throws(PipelineError) -> EncoderOptions {
    try sought(encoder, target: target, limit).options
  }

  /// Returns a trial that probably reaches a target, without an earlier one.
  private func sought(
    _ encoder: EncoderOptions, target: SimilarityTarget, _ limit: ByteLimit
  ) throws(PipelineError) -> Trial {
    let raised = SimilarityTarget(
      score: min(100, target.score + Self.margin), maxQuality: target.maxQuality, choosesChroma: target.choosesChroma)
    return try refine(encode(limit.options(encoder, quality: raised.expectedQuality)), target: raised, limit)
  }

  /// The outcome of a comparison of formats.
  struct Chosen {
    /// The options of the encoder whose result is the smallest.
    let options: EncoderOptions
    /// The result of these options without metadata, if the sample is the whole image and a trial has it.
    let bytes: CompressedBytes?
    /// The score of the requested quality.
    let maxScore: Double
    /// The formats that were compared: the chosen one, and then the smallest first.
    let compared: [FormatTrial]
  }

  /// Chooses the format whose result is the smallest at equal similarity.
  /// - `roomByteCount`: what is left of the image's memory. Lossless WebP needs more than other formats; if it has no
  ///   room, it is not chosen.
  func choose(
    _ choice: FormatChoice, _ limit: ByteLimit, roomByteCount: UInt64
  ) throws(PipelineError) -> Chosen {
    if choice.candidates.count == 1 { return try chooseOnly(choice.candidates[0], limit) }
    var (trials, maxScore) = try lossyTrials(choice, limit)
    let score = trials.first?.score ?? 100
    let mayBeLossless = try choice.candidates.contains(where: \.isLossy) ? isPredictable : true
    for candidate in choice.candidates where !candidate.isLossy && mayBeLossless {
      trials.append(try encode(candidate))
    }
    let smallest = trials.filter { $0.score != nil }.map { size(of: $0, at: score) }.min() ?? .infinity
    let pixelCount = Double(choice.candidates[0].width) * Double(choice.candidates[0].height)
    let maxSize = max(smallest * Self.drawing.ratio, pixelCount * Self.drawing.density)
    let lossless = trials.filter { $0.score == nil }
    let isDrawing = mayBeLossless && (lossless.isEmpty || lossless.contains { size(of: $0, at: score) < maxSize })
    if isDrawing, let lossless = choice.losslessWebP, (try? lossless.estimatedByteCount()) ?? .max <= roomByteCount {
      trials.append(try encode(lossless))
    }
    var compared = trials.filter { trial in choice.candidates.contains { $0.format == trial.options.format } }
      .map { (trial: $0, size: size(of: $0, at: score)) }
    compared.sort { $0.size < $1.size }
    // The quality of a lossless result cannot be lowered where it is too large.
    let chosen = compared.firstIndex { $0.trial.score != nil || $0.size <= Double(limit.byteCount) } ?? 0
    compared.insert(compared.remove(at: chosen), at: 0)
    let best = compared[0].trial
    if let reached = best.score, reached != score {
      let target = SimilarityTarget(score: score, maxQuality: 100)
      let exact = best.isQuick ? try encode(best.options, keepsBytes: sample.ratio == 1) : best
      let isFinal = exact.bytes != nil && abs((exact.score ?? 100) - score) <= Self.enough
      compared[0].trial = isFinal ? exact : try refine(exact, target: target, limit.applied(to: best.options))
    }
    return Chosen(
      options: compared[0].trial.options, bytes: compared[0].trial.bytes, maxScore: maxScore,
      compared: compared.map { FormatTrial($0.trial.options, size: $0.size) })
  }

  /// Chooses the quality of the only format that stores the rows.
  private func chooseOnly(_ encoder: EncoderOptions, _ limit: ByteLimit) throws(PipelineError) -> Chosen {
    let limit = limit.applied(to: encoder)
    var chosen = encoder
    if let target = limit.similarity { chosen = try options(encoder, target: target, limit) }
    return Chosen(options: chosen, bytes: nil, maxScore: 100, compared: [])
  }

  /// Whether a lossless result may be the smallest.
  private var isPredictable: Bool {
    get throws(PipelineError) {
      try withCodecErrors { () throws(CodecError) in try sample.predictableShare } >= Self.minPredictableShare
    }
  }

  /// Returns a trial in each lossy format; the first one has the score at which all of them are compared.
  ///
  /// It is the JPEG of the requested quality, or of the lower one that reaches the requested score; of images with alpha,
  /// the first lossy candidate at an equivalent quality. `maxScore` is that of the requested quality.
  private func lossyTrials(
    _ choice: FormatChoice, _ limit: ByteLimit
  ) throws(PipelineError) -> (trials: [Trial], maxScore: Double) {
    let lossy = choice.candidates.filter(\.isLossy)
    guard let first = choice.reference ?? lossy.first else { return ([], 100) }
    let quality = first.format.equivalentQuality(first.quality)
    var reference = try encode(limit.applied(to: first).options(first, quality: quality))
    let maxScore = reference.score ?? 100
    if let wanted = choice.targetScore, wanted < maxScore {
      let limit = limit.applied(to: first)
      let target = SimilarityTarget(
        score: wanted, maxQuality: quality, choosesChroma: limit.similarity?.choosesChroma ?? false)
      reference = try sought(first, target: target, limit)
    }
    let target = SimilarityTarget(score: reference.score ?? 100, maxQuality: 100)
    var trials = [reference]
    let hasFullChroma = reference.options.subsampling == .full && first.adaptsChroma && lossy.contains(first)
    for candidate in lossy where candidate.format != first.format {
      // Its chroma has half the size: where a JPEG needs more, it takes more bytes, or does not reach the score.
      if hasFullChroma, candidate.format == .webp { continue }
      let limit = limit.applied(to: candidate)
      let quality = candidate.format.equivalentQuality(
        choice.reference == nil ? candidate.quality : reference.options.quality)
      let trial = try encode(limit.options(candidate, quality: quality), isQuick: true)
      trials.append(try refine(trial, target: target, limit, rival: size(of: reference, at: target.score)))
    }
    return (trials, maxScore)
  }

  /// Lowers or raises the quality of a lossy trial until it is about that at which the score is the target's.
  /// - `rival`: The size in bytes with which the trial's is compared, if that is all it is for.
  private func refine(
    _ first: Trial, target: SimilarityTarget, _ limit: ByteLimit, rival: Double? = nil
  ) throws(PipelineError) -> Trial {
    guard let curve = first.options.format.traits.output?.sizeCurve, first.score != nil else { return first }
    let scale = QualityScale(curve: curve, isFine: true)
    var limit = limit
    limit.hasFullChroma = first.options.subsampling == .full
    var search = SimilaritySearch(
      scale: scale, target: target, limit: .max, floor: scale.step(1), hasFullChroma: limit.hasFullChroma)
    func note(_ trial: Trial) {
      search.note(quality: scale.step(trial.options), byteCount: trial.byteCount, score: trial.score)
    }
    note(first)
    var nearest = first
    for trialCount in 1...Self.maxTrials where !isNear(target.score, nearest, rival) {
      if trialCount == Self.maxTrials, abs((nearest.score ?? 100) - target.score) <= Self.distances.far { break }
      guard let step = search.expected() else { return nearest }
      let isComparable = limit.hasFullChroma == search.hasFullChroma
      limit.hasFullChroma = search.hasFullChroma
      let trial = try encode(scale.options(first.options, step: step, limit: limit), isQuick: first.isQuick)
      note(trial)
      let isNearer = abs((trial.score ?? 100) - target.score) < abs((nearest.score ?? 100) - target.score)
      if !isComparable || isNearer { nearest = trial }
    }
    // What would be tried next is a better prediction than what was tried.
    guard rival == nil, let step = search.expected() else { return nearest }
    limit.hasFullChroma = search.hasFullChroma
    return Trial(
      options: scale.options(first.options, step: step, limit: limit), isQuick: first.isQuick,
      byteCount: nearest.byteCount, score: nearest.score, bytes: nil)
  }

  /// Whether the score of a trial is near enough to a target.
  private func isNear(_ score: Double, _ trial: Trial, _ rival: Double?) -> Bool {
    let distances = Self.distances
    var maxDistance = distances.predicting
    if let rival {
      let factor = size(of: trial, at: score) / rival
      let isClose = (1 / distances.factor...distances.factor).contains(factor)
      maxDistance = isClose ? distances.near : distances.far
    }
    return abs((trial.score ?? 100) - score) <= maxDistance
  }

  /// Encodes the sample, and measures its similarity if it is lossy.
  /// - `isQuick`: Whether lossy WebP is encoded in less than half of the time, if its options do not request that anyway.
  private func encode(
    _ encoder: EncoderOptions, isQuick: Bool = false, keepsBytes: Bool = false
  ) throws(PipelineError) -> Trial {
    let image = sample.image
    var options = encoder
    if isQuick, options.format == .webp { options.webp.limitMethod(to: Self.quickMethod) }
    let isQuick = options != encoder
    (options.width, options.height) = (image.options.width, image.options.height)
    options.metadata = EmbeddedMetadata()
    let bytes = CompressedBytes(limit: .max, budget: image.budget)
    try image.encode(options, buffer, allowance) { (portion) throws(PipelineError) in try bytes.append(portion) }
    let score =
      options.isLossy && SimilarityTarget.isMeasurable(PixelSize(width: options.width, height: options.height))
      ? try SimilarityTrial.score(of: bytes, options: options, image: image, budget: image.budget, allowance) : nil
    return Trial(
      options: encoder, isQuick: isQuick, byteCount: bytes.byteCount,
      score: score.map { wholeScore($0, options.format) }, bytes: keepsBytes ? bytes : nil)
  }

  /// Returns the score of the whole image where that of the sample is known.
  private func wholeScore(_ score: Double, _ format: ImageFormat) -> Double {
    guard sample.ratio > 1, format.traits.output?.sizeCurve == .libjpeg else { return score }
    return score - Self.excess * (100 - score) * (100 - score)
  }

  /// Returns the estimated size in bytes of the whole image where it has a score.
  ///
  /// The logarithm of the size falls by about as much as that of the distance to the maximum score rises.
  private func size(of trial: Trial, at score: Double) -> Double {
    let fixed = min(Double(trial.options.format.traits.output?.fixedByteCount ?? 0), Double(trial.byteCount))
    let distances = trial.score.map { (of: max(0.5, 100 - $0), at: max(0.5, 100 - score)) }
    var factor = distances.map { max(Self.minFactor, $0.of / $0.at) } ?? 1
    if trial.options.format == .webp, trial.score != nil, sample.ratio > 1 { factor *= Self.webPFactors.tiles }
    if trial.isQuick { factor *= Self.webPFactors.quick }
    return fixed + (Double(trial.byteCount) - fixed) * sample.ratio * factor
  }
}

extension ImageFormat {
  /// Returns the quality at which most images have the score of a JPEG of another one.
  fileprivate func equivalentQuality(_ quality: Int) -> Int {
    traits.output?.sizeCurve?.quality(ofJPEG: quality) ?? quality
  }
}

extension FormatTrial {
  /// - `size`: The estimated size in bytes.
  fileprivate init(_ options: EncoderOptions, size: Double) {
    self.init(
      format: options.format.rawValue, estimatedByteCount: UInt64(size.rounded()),
      compressionQuality: options.reportedQuality)
  }
}
