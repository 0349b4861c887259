internal import ImageCodecs

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// Chooses the next quality to try for the smallest result that reaches a similarity and fits a size limit.
///
/// The logarithm of the distance to the maximum score is nearly linear in the `coarseness` of the quality, so trials
/// are interpolated between earlier ones.
struct SimilaritySearch {
  /// The excess over the target that is close enough, as a lower quality would hardly reach it.
  private static let enough = 0.15
  /// The usual slopes of the logarithms, of the distance to the maximum score and of the size.
  private static let usualSlope = 0.65

  private let curve: ImageFormat.SizeCurve
  private let target: SimilarityTarget
  private let limit: Double
  /// The qualities between those that are known to be too low and those that are known to be higher than needed.
  private var lowest = 1
  private var highest: Int
  private var below: (quality: Int, score: Double)?
  private var above: (quality: Int, score: Double)?
  private var tooLarge: (quality: Int, size: Double)?
  private var trialCount = 0
  /// The number of consecutive trials that reached the score, or minus the number that did not.
  private var run = 0

  init(curve: ImageFormat.SizeCurve, target: SimilarityTarget, limit: UInt64) {
    self.curve = curve
    self.target = target
    self.limit = Double(limit)
    highest = target.maxQuality
  }

  /// Records a trial.
  /// - `score`: Its similarity; `nil` if it does not fit the size limit.
  mutating func note(quality: Int, byteCount: UInt64, score: Double?) {
    trialCount += 1
    guard let score else {
      tooLarge = (quality, Double(byteCount))
      highest = min(highest, quality - 1)
      return
    }
    if score >= target.score {
      above = (quality, score)
      highest = min(highest, quality - 1)
      run = max(run, 0) + 1
    } else {
      below = (quality, score)
      lowest = max(lowest, quality + 1)
      run = min(run, 0) - 1
    }
  }

  /// The next quality to try; `nil` if another trial is not worthwhile.
  var next: Int? {
    guard trialCount < ByteLimit.maxTrials, lowest <= highest else { return nil }
    if let above, above.score < target.score + Self.enough { return nil }
    if above == nil, below != nil, trialCount == ByteLimit.maxTrials - 1 { return highest }
    let range = lowest...highest
    guard let near = above ?? below else {
      guard let tooLarge, trialCount < ByteLimit.maxTrials - 1 else { return lowest }
      return quality(from: tooLarge.quality, distance: log(tooLarge.size) - log(limit * 0.95), range)
    }
    var slope = Self.usualSlope
    if let above, let below {
      let steps = curve.coarseness(below.quality) - curve.coarseness(above.quality)
      slope = (distance(below.score) - distance(above.score)) / steps
    }
    let aimed = quality(
      from: near.quality, distance: (distance(target.score) - distance(near.score)) / slope * Self.usualSlope, range)
    // The line can err in the same direction repeatedly.
    let middle = (lowest + highest) / 2
    guard above != nil, below != nil, abs(run) >= 2 else { return aimed }
    return run > 0 ? min(aimed, (aimed + middle) / 2) : max(aimed, (aimed + middle + 1) / 2)
  }

  private func distance(_ score: Double) -> Double { log(max(0.05, 100 - score)) }

  /// Returns the lowest quality in `range` that is not coarser than `distance` at the usual slope from `quality`.
  private func quality(from quality: Int, distance: Double, _ range: ClosedRange<Int>) -> Int {
    let wanted = curve.coarseness(quality) + distance / Self.usualSlope
    return range.first { curve.coarseness($0) <= wanted } ?? range.upperBound
  }
}
