internal import ImageCodecs

/// Predicts the format and the quality of a result from trials of a sample.
struct SampleSearch {
  /// The maximum number of trials in the format whose quality is predicted.
  private static let maxTrials = 3
  /// By how much the predicted quality aims above a target, so that most images reach it: scores of samples are a little
  /// higher than those of their images.
  private static let margin = 0.8
  /// The maximum distance of the scores of two formats whose sizes are compared, if the sizes differ by less than a factor,
  /// and otherwise.
  private static let comparable = (near: 1.5, factor: 1.2, far: 5.0)
  /// The maximum size of the PNG of a drawing, of which lossless WebP is tried, too: compared with the smallest lossy
  /// result, or in bytes per pixel.
  private static let drawing = (ratio: 2.0, density: 0.125)

  private let sample: ImageSample
  private let buffer: PixelBuffer
  private let allowance: WorkAllowance

  /// A trial of the sample.
  private struct Trial {
    let options: EncoderOptions
    let byteCount: UInt64
    /// The similarity, at most 100; `nil` if it is lossless.
    let score: Double?
  }

  init(_ image: BufferedImage, _ buffer: PixelBuffer, _ allowance: WorkAllowance) throws(PipelineError) {
    sample = try withCodecErrors { () throws(CodecError) in try ImageSample(image) }
    self.buffer = buffer
    self.allowance = allowance
  }

  /// Returns an encoder's options with the quality at which the image probably reaches a target.
  func options(
    _ encoder: EncoderOptions, target: SimilarityTarget, _ limit: ByteLimit
  ) throws(PipelineError) -> EncoderOptions {
    let raised = SimilarityTarget(score: min(100, target.score + Self.margin), maxQuality: target.maxQuality)
    let first = try encode(limit.options(encoder, quality: raised.expectedQuality))
    return try refine(first, target: raised, limit).options
  }

  /// Chooses the format whose result is the smallest at equal similarity.
  /// - Returns: The options of its encoder, and what was compared, the smallest first.
  func choose(
    _ choice: FormatChoice, _ limit: ByteLimit
  ) throws(PipelineError) -> (options: EncoderOptions, compared: [FormatTrial]) {
    var trials = try lossyTrials(choice, limit)
    let score = trials.first?.score ?? 100
    for candidate in choice.candidates where !candidate.isLossy { trials.append(try encode(candidate)) }
    let smallest = trials.filter { $0.score != nil }.map { size(of: $0, at: score) }.min() ?? .infinity
    let pixelCount = Double(choice.candidates[0].width) * Double(choice.candidates[0].height)
    let maxSize = max(smallest * Self.drawing.ratio, pixelCount * Self.drawing.density)
    let isDrawing = trials.contains { $0.score == nil && size(of: $0, at: score) < maxSize }
    if isDrawing, var lossless = choice.candidates.first(where: { $0.format == .webp && $0.isLossy }) {
      lossless.webp.isLossless = true
      trials.append(try encode(lossless))
    }
    var compared = trials.filter { trial in choice.candidates.contains { $0.format == trial.options.format } }
      .map { (trial: $0, size: size(of: $0, at: score)) }
    compared.sort { $0.size < $1.size }
    let best = compared[0].trial
    let target = SimilarityTarget(score: score, maxQuality: 100)
    compared[0].trial = try refine(best, target: target, limit.applied(to: best.options))
    return (compared[0].trial.options, compared.map { FormatTrial($0.trial.options, size: $0.size) })
  }

  /// Returns a trial in each lossy format; the first one has the score at which all of them are compared.
  ///
  /// It is the JPEG of the requested quality, or of the lower one that reaches the requested score; of images with alpha,
  /// the first lossy candidate at an equivalent quality.
  private func lossyTrials(_ choice: FormatChoice, _ limit: ByteLimit) throws(PipelineError) -> [Trial] {
    let lossy = choice.candidates.filter(\.isLossy)
    guard let first = choice.reference ?? lossy.first else { return [] }
    let quality = first.format.equivalentQuality(first.quality)
    var reference = try encode(limit.applied(to: first).options(first, quality: quality))
    if let wanted = choice.targetScore, wanted < reference.score ?? 0 {
      let target = SimilarityTarget(score: min(100, wanted + Self.margin), maxQuality: quality)
      reference = try refine(reference, target: target, limit.applied(to: first))
    }
    let target = SimilarityTarget(score: reference.score ?? 100, maxQuality: 100)
    var trials = [reference]
    for candidate in lossy where candidate.format != first.format {
      let limit = limit.applied(to: candidate)
      let quality = candidate.format.equivalentQuality(
        choice.reference == nil ? candidate.quality : reference.options.quality)
      let trial = try encode(limit.options(candidate, quality: quality))
      trials.append(try refine(trial, target: target, limit, rival: size(of: reference, at: target.score)))
    }
    return trials
  }

  /// Lowers or raises the quality of a lossy trial until it is about the lowest that reaches a target.
  /// - `rival`: The size in bytes with which the trial's is compared, if that is all it is for.
  private func refine(
    _ first: Trial, target: SimilarityTarget, _ limit: ByteLimit, rival: Double? = nil
  ) throws(PipelineError) -> Trial {
    guard let curve = first.options.format.traits.output?.sizeCurve, first.score != nil else { return first }
    let scale = QualityScale(curve: curve, isFine: true)
    var search = SimilaritySearch(scale: scale, target: target, limit: .max, floor: scale.step(1))
    func note(_ trial: Trial) {
      search.note(quality: scale.step(trial.options), byteCount: trial.byteCount, score: trial.score)
    }
    note(first)
    var best = first
    for _ in 1..<Self.maxTrials where !isComparable(best, rival, at: target.score) {
      guard let step = search.expected else { return best }
      let trial = try encode(scale.options(first.options, step: step, limit: limit))
      note(trial)
      let (reached, before) = (trial.score ?? 100, best.score ?? 100)
      let isBetter = min(reached, before) >= target.score ? trial.byteCount < best.byteCount : reached > before
      if isBetter { best = trial }
    }
    // What would be tried next is a better prediction than what was tried.
    guard rival == nil, let step = search.expected else { return best }
    return Trial(
      options: scale.options(first.options, step: step, limit: limit), byteCount: best.byteCount, score: best.score)
  }

  /// Whether the sizes of a trial and its rival can be compared, although their scores differ.
  private func isComparable(_ trial: Trial, _ rival: Double?, at score: Double) -> Bool {
    guard let rival else { return false }
    let factor = size(of: trial, at: score) / rival
    let isClose = (1 / Self.comparable.factor...Self.comparable.factor).contains(factor)
    return abs((trial.score ?? 100) - score) <= (isClose ? Self.comparable.near : Self.comparable.far)
  }

  /// Encodes the sample, and measures its similarity if it is lossy.
  private func encode(_ encoder: EncoderOptions) throws(PipelineError) -> Trial {
    let image = sample.image
    var options = encoder
    (options.width, options.height) = (image.options.width, image.options.height)
    options.metadata = EmbeddedMetadata()
    let bytes = CompressedBytes(limit: .max, budget: image.budget)
    try image.encode(options, buffer, allowance) { (portion) throws(PipelineError) in try bytes.append(portion) }
    let score =
      options.isLossy && SimilarityTarget.isMeasurable(PixelSize(width: options.width, height: options.height))
      ? try SimilarityTrial.score(of: bytes, options: options, image: image, budget: image.budget, allowance) : nil
    return Trial(options: encoder, byteCount: bytes.byteCount, score: score)
  }

  /// Returns the estimated size in bytes of the whole image where it has a score.
  ///
  /// The logarithm of the size falls by about as much as that of the distance to the maximum score rises.
  private func size(of trial: Trial, at score: Double) -> Double {
    let fixed = min(Double(trial.options.format.traits.output?.fixedByteCount ?? 0), Double(trial.byteCount))
    let distances = trial.score.map { (of: max(0.5, 100 - $0), at: max(0.5, 100 - score)) }
    return fixed + (Double(trial.byteCount) - fixed) * sample.ratio * (distances.map { $0.of / $0.at } ?? 1)
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
