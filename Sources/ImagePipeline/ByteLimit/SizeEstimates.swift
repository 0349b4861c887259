internal import ImageCodecs
internal import LibC

/// Estimates the sizes of a JPEG at any quality from samples of its blocks, one for each size of the chroma planes, and
/// from the sizes of trials.
struct SizeEstimates {
  private let image: BufferedImage
  private let limit: ByteLimit
  private let encoder: EncoderOptions
  private let scale: QualityScale
  private var samples: [ChromaSubsampling: JPEGSample] = [:]
  /// The steps of trials, and the logarithms of their sizes.
  private var trials: [(step: Int, size: Double)] = []
  /// The logarithms of estimates without correction, by the step of the quality.
  private var estimates: [Int: Double] = [:]

  /// - `encoder`: The options of the first trial.
  init(_ image: BufferedImage, limit: ByteLimit, encoder: EncoderOptions, scale: QualityScale) {
    self.image = image
    self.limit = limit
    self.encoder = encoder
    self.scale = scale
  }

  /// Returns an upper bound of the bytes that the samples charge.
  static func estimatedByteCount(_ encoder: EncoderOptions, limit: ByteLimit) throws(CodecError) -> UInt64 {
    guard encoder.format.traits.output?.sizeCurve == .libjpeg, limit.similarity == nil else { return 0 }
    let sizes: Set = [encoder.subsampling, limit.options(encoder, quality: 1).subsampling]
    var sum: UInt64 = 0
    for size in sizes { sum += try JPEGSample.estimatedByteCount(encoder.with(subsampling: size)) }
    return sum
  }

  /// Records the logarithm of the size of a trial.
  mutating func note(step: Int, size: Double) { trials.append((step, size)) }

  /// The steps whose sizes are known without another estimate, in ascending order.
  var steps: [Int] { estimates.keys.sorted() }

  /// Returns the estimated logarithm of the size at a step, corrected by the nearest trial with chroma planes of the same
  /// size, and of two by the earlier one.
  mutating func size(_ step: Int) throws(CodecError) -> Double {
    let subsampling = subsampling(step)
    let comparable = trials.filter { self.subsampling($0.step) == subsampling }
    let estimate = try estimate(step)
    guard let near = comparable.min(by: { abs($0.step - step) < abs($1.step - step) }) else { return estimate }
    return estimate + near.size - (try self.estimate(near.step))
  }

  private func subsampling(_ step: Int) -> ChromaSubsampling {
    scale.options(encoder, step: step, limit: limit).subsampling
  }

  private mutating func estimate(_ step: Int) throws(CodecError) -> Double {
    if let known = estimates[step] { return known }
    let options = scale.options(encoder, step: step, limit: limit)
    let size = log(try sample(options).byteCount(quality: options.quality, quality64ths: options.quality64ths))
    estimates[step] = size
    return size
  }

  private mutating func sample(_ options: EncoderOptions) throws(CodecError) -> JPEGSample {
    if let sample = samples[options.subsampling] { return sample }
    let rows = Strip(format: options.pixelFormat, rows: try image.rows(options))
    let sample = try JPEGSample(options: options, rows: rows, budget: image.budget)
    samples[options.subsampling] = sample
    return sample
  }
}
