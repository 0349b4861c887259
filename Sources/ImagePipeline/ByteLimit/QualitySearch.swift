internal import ImageCodecs

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// Which quality to try next, from the sizes that those before came to.
///
/// The logarithm of a file's size is nearly linear in what `coarseness` makes of its quality. So each trial is aimed by
/// those before, and three are enough for most images where bisection takes seven.
struct QualitySearch {
  /// As good as exact: what a better quality would gain nobody sees.
  private static let enough = 0.985

  private let curve: ImageFormat.SizeCurve
  private let limit: Double
  /// The least quality that may be tried.
  private let floor: Int
  /// Trials after which the least quality must have been tried, where nothing fits.
  private let trialsToFloor: Int
  private var failures: [(quality: Int, size: Double)] = []
  private var fit: (quality: Int, size: Double)?
  private var trialCount = 0
  /// Trials in a row that fitted, or less than zero, that did not.
  private var run = 0

  init(curve: ImageFormat.SizeCurve, limit: UInt64, floor: Int, trialsToFloor: Int) {
    self.curve = curve
    self.limit = Double(limit)
    self.floor = floor
    self.trialsToFloor = trialsToFloor
  }

  mutating func note(quality: Int, byteCount: UInt64) {
    trialCount += 1
    let size = max(1, Double(byteCount))
    if size <= limit {
      fit = (quality, size)
      run = max(run, 0) + 1
    } else {
      failures.append((quality, size))
      run = min(run, 0) - 1
    }
  }

  /// The next quality to try: above all that fit and below all that did not; `nil` when that is not worth it.
  var next: Int? {
    guard let last = failures.last, trialCount < ByteLimit.maxTrials else { return nil }
    if let fit {
      guard fit.quality + 1 < last.quality, fit.size < limit * Self.enough else { return nil }
      let slope = self.slope(from: (last.quality, last.size), to: fit)
      let aimed = quality(from: fit, slope: slope, aim: 0.995, within: fit.quality + 1...last.quality - 1)
      // An image that was a JPEG before has steps: the line then errs to one side again and again.
      let middle = (fit.quality + last.quality) / 2
      if run >= 2 { return max(aimed, (aimed + middle + 1) / 2) }
      return run <= -2 ? min(aimed, (aimed + middle) / 2) : aimed
    }
    guard last.quality > floor else { return nil }
    guard trialCount < trialsToFloor - 1 else { return floor }
    // Where the first aim failed, the image is not like others: the next are further off.
    let aim = [0.97, 0.93, 0.85, 0.7, 0.5][min(failures.count, 5) - 1]
    let before = failures.dropLast().last
    let slope = before.map { min(1.2, max(0.5, self.slope(from: $0, to: last))) } ?? 0.65
    let aimed = quality(from: last, slope: slope, aim: aim, within: floor...last.quality - 1)
    let most = last.quality * [8, 7, 4, 2][min(failures.count, 4) - 1] / 8
    return max(floor, min(aimed, most))
  }

  private func slope(from a: (quality: Int, size: Double), to b: (quality: Int, size: Double)) -> Double {
    let run = curve.coarseness(b.quality) - curve.coarseness(a.quality)
    return (log(a.size) - log(b.size)) / run
  }

  /// The highest quality that the line through a trial tells to be at most `aim` times the limit.
  private func quality(
    from trial: (quality: Int, size: Double), slope: Double, aim: Double, within range: ClosedRange<Int>
  ) -> Int {
    let wanted = curve.coarseness(trial.quality) + (log(trial.size) - log(limit * aim)) / max(slope, 0.01)
    return range.last { curve.coarseness($0) >= wanted } ?? range.lowerBound
  }
}

extension ImageFormat.SizeCurve {
  /// What the logarithm of a file's size falls with, by 0.65 for each unit or so.
  func coarseness(_ quality: Int) -> Double {
    let q = Double(quality)
    switch self {
    case .libjpeg:
      // libjpeg's scale of its quantisation tables, in which no entry falls below 1.
      return log((q < 50 ? 5000 / q : 200 - 2 * q) + 4)
    case .libwebp:
      // libwebp's quantiser, which moves faster above 75.
      let linear = q < 75 ? q / 150 : q / 50 - 1
      let index = 1 - cbrt(linear)
      let knee = 1 - cbrt(0.5)
      return q < 75 ? (index - knee) * 5 : (index - knee) * 12
    case .linear:
      return -q / 12
    }
  }
}
