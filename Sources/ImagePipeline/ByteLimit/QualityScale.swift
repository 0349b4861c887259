internal import ImageCodecs
internal import LibC

/// The qualities of trials, which are closer to each other than those of a request for a JPEG: sizes at high qualities
/// differ by up to a quarter from one whole quality to the next.
struct QualityScale: Sendable, Hashable {
  /// By how much the logarithm of the file size usually falls per unit of `coarseness`; that of the distance to the
  /// maximum similarity rises by as much.
  static let usualSlope = 0.65

  private let curve: ImageFormat.SizeCurve
  /// The number of steps between two qualities of 1 to 100.
  let steps: Int

  /// - `isFine`: Whether a JPEG has steps between these.
  init(curve: ImageFormat.SizeCurve, isFine: Bool) {
    self.curve = curve
    steps = isFine && curve == .libjpeg ? 64 : 1
  }

  /// The distance of two steps between which another trial for a score is worthwhile.
  ///
  /// It is half a quality of a JPEG: scores do not rise with every step.
  var minRange: Int { steps / 2 }

  /// Returns the step of a quality of 1 to 100.
  func step(_ quality: Int) -> Int { quality * steps }

  /// Returns the step of the quality of an encoder.
  func step(_ options: EncoderOptions) -> Int { options.quality * steps + (steps > 1 ? options.quality64ths : 0) }

  /// Returns the options of an encoder at another step.
  func options(_ encoder: EncoderOptions, step: Int, limit: ByteLimit) -> EncoderOptions {
    var options = limit.options(encoder, quality: step / steps)
    options.quality64ths = step % steps
    return options
  }

  /// Returns a measure of compression in which the logarithm of the file size is nearly linear.
  func coarseness(_ step: Int) -> Double { curve.coarseness(Double(step) / Double(steps)) }

  /// Returns the lowest step that is not coarser than `coarseness`, or the highest.
  func step(coarseness: Double, in range: ClosedRange<Int>) -> Int {
    var (low, high) = (range.lowerBound, range.upperBound)
    while low < high {
      let middle = (low + high) / 2
      if self.coarseness(middle) <= coarseness { high = middle } else { low = middle + 1 }
    }
    return low
  }
}

extension ImageFormat.SizeCurve {
  /// Returns the quality, 1 to 100, at which most images have the score of a JPEG of another one.
  ///
  /// Medians of 22 images; see Benchmarks/results/format-choice.md.
  func quality(ofJPEG quality: Int) -> Int {
    let jpeg: [Double] = [1, 30, 50, 65, 80, 90, 95, 100]
    let own: [Double] =
      switch self {
      case .libjpeg: jpeg
      case .libwebp: [1, 38, 69, 78, 87, 99, 100, 100]
      case .libjxl: [1, 44, 65, 74, 85, 95, 98, 100]
      case .linear: [1, 46, 56, 62, 76, 91, 96, 100]
      }
    let next = max(1, jpeg.firstIndex { $0 >= Double(quality) } ?? jpeg.count - 1)
    let share = (Double(quality) - jpeg[next - 1]) / (jpeg[next] - jpeg[next - 1])
    return Int((own[next - 1] + share * (own[next] - own[next - 1])).rounded())
  }

  /// Returns the coarseness of a quality of 1 to 100, which may lie between two whole ones.
  fileprivate func coarseness(_ q: Double) -> Double {
    switch self {
    case .libjpeg:
      // The scale factor of libjpeg's quantisation tables, whose entries are never below 1.
      return log((q < 50 ? 5000 / q : 200 - 2 * q) + 4)
    case .libwebp:
      // The quantiser of libwebp, which changes faster above 75.
      let linear = q < 75 ? q / 150 : q / 50 - 1
      let index = 1 - cbrt(linear)
      let knee = 1 - cbrt(0.5)
      return q < 75 ? (index - knee) * 5 : (index - knee) * 12
    case .libjxl:
      // The distance that libjxl is given, which changes faster below 30.
      return log(q < 30 ? q * (53 * q / 3000 - 1.15) + 25 : 9.1 - 0.09 * q)
    case .linear:
      return -q / 12
    }
  }
}

extension EncoderOptions {
  /// The quality of a lossy result, 0.01 to 1, as reported, with at most four decimals; `nil` if it is lossless.
  var reportedQuality: Double? {
    guard isLossy else { return nil }
    return quality64ths == 0
      ? Double(quality) / 100 : ((Double(quality) + Double(quality64ths) / 64) * 100).rounded() / 10_000
  }
}
