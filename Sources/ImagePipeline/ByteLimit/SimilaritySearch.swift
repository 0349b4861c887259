internal import ImageCodecs
internal import LibC

/// Chooses the next quality to try for the smallest result that reaches a similarity and fits a size limit.
///
/// The logarithm of the distance to the maximum score is nearly linear in the `coarseness` of the quality, so trials
/// are interpolated between earlier ones. Small images and graphics are far from that, and are searched by bisection.
/// Qualities are steps of a `QualityScale`.
struct SimilaritySearch {
  /// The maximum number of trial encodes of one image, including the first: enough to find any of 100 qualities.
  static let maxTrials = 8
  /// The excess over the target that is close enough, as a lower quality would hardly reach it.
  private static let enough = 0.3
  /// The excess that is close enough if the first quality was predicted: another trial costs more than it saves.
  private static let enoughOfPrediction = 1.0
  /// The number of trials after which the search stops extrapolating from trials that all failed, or all succeeded.
  private static let maxExtrapolations = 3

  private let scale: QualityScale
  private let target: SimilarityTarget
  private let limit: Double
  /// The minimum quality to try for a result that does not fit the size limit.
  private let floor: Int
  /// The qualities between those that are known to be too low and those that are known to be higher than needed.
  private var lowest: Int
  private var highest: Int
  private var below: (quality: Int, score: Double)?
  private var above: (quality: Int, score: Double)?
  private var tooLarge: (quality: Int, size: Double)?
  private var trialCount = 0
  /// The number of consecutive trials that reached the score, or minus the number that did not.
  private var run = 0
  /// Whether the quality of the first trial was predicted by a sample.
  private let isPredicted: Bool

  init(scale: QualityScale, target: SimilarityTarget, limit: UInt64, floor: Int, isPredicted: Bool = false) {
    self.isPredicted = isPredicted
    self.scale = scale
    self.target = target
    self.limit = Double(limit)
    self.floor = floor
    lowest = scale.step(1)
    highest = scale.step(target.maxQuality)
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
    let trialsLeft = Self.maxTrials - trialCount
    guard trialsLeft > 0, lowest <= highest else { return nil }
    guard let near = above ?? below else { return nextSmaller(trialsLeft: trialsLeft) }
    if above != nil, highest - lowest < scale.minRange { return nil }
    if let above, let below { return next(above, below, trialsLeft: trialsLeft) }
    if above == nil, tooLarge != nil { return nextBetweenLimits(near, trialsLeft: trialsLeft) }
    if above == nil, trialsLeft == 1 || trialCount >= Self.maxExtrapolations { return highest }
    if let above, above.score < target.score + enough { return nil }
    let aimed = quality(from: near.quality, distance: distance(target.score) - distance(near.score))
    guard trialCount > 1 else { return aimed }
    return above == nil ? max(aimed, middle) : min(aimed, middle)
  }

  private var enough: Double { isPredicted ? Self.enoughOfPrediction : Self.enough }

  private var middle: Int { (lowest + highest) / 2 }

  /// Returns the next quality to try below those that do not fit the size limit.
  private func nextSmaller(trialsLeft: Int) -> Int? {
    let least = max(lowest, floor)
    guard let tooLarge, least <= highest else { return nil }
    guard trialsLeft > 1 else { return least }
    let aimed = quality(from: tooLarge.quality, distance: log(tooLarge.size) - log(limit * 0.95))
    return max(least, searchable(aimed, trialsLeft: trialsLeft))
  }

  /// Returns the next quality to try above one whose score is too low and below one that does not fit the size limit.
  private func nextBetweenLimits(_ below: (quality: Int, score: Double), trialsLeft: Int) -> Int {
    let aimed = quality(from: below.quality, distance: distance(target.score) - distance(below.score))
    return searchable(aimed < highest ? aimed : middle, trialsLeft: trialsLeft)
  }

  /// Returns the next quality to try between two trials.
  private func next(
    _ above: (quality: Int, score: Double), _ below: (quality: Int, score: Double), trialsLeft: Int
  ) -> Int? {
    guard above.score >= target.score + enough else { return nil }
    var next = interpolated(above, below)
    // The line can err in the same direction repeatedly.
    if run >= 2 { next = min(next, (next + middle) / 2) }
    if run <= -2 { next = max(next, (next + middle + 1) / 2) }
    return searchable(next, trialsLeft: trialsLeft)
  }

  /// The quality at which the score is probably that of the target, as far as it lies between those that are known to be
  /// too low and higher than needed; `nil` if there is no such quality.
  var expected: Int? {
    guard lowest <= highest, let near = above ?? below else { return nil }
    if let above, let below { return interpolated(above, below) }
    return quality(from: near.quality, distance: distance(target.score) - distance(near.score))
  }

  private func interpolated(_ above: (quality: Int, score: Double), _ below: (quality: Int, score: Double)) -> Int {
    let steps = scale.coarseness(below.quality) - scale.coarseness(above.quality)
    let slope = (distance(below.score) - distance(above.score)) / steps
    return quality(
      from: above.quality, distance: (distance(target.score) - distance(above.score)) / slope * QualityScale.usualSlope)
  }

  /// Returns the quality nearest to `quality` for which bisection can search either part with the trials that are left.
  private func searchable(_ quality: Int, trialsLeft: Int) -> Int {
    let count = scale.step(1 << (trialsLeft - 1) - 1)
    return max(lowest, highest - count, min(quality, lowest + count, highest))
  }

  private func distance(_ score: Double) -> Double { log(max(0.05, 100 - score)) }

  /// Returns the lowest possible quality that is not coarser than `distance` at the usual slope from `quality`.
  private func quality(from quality: Int, distance: Double) -> Int {
    let wanted = scale.coarseness(quality) + distance / QualityScale.usualSlope
    return scale.step(coarseness: wanted, in: lowest...highest)
  }
}
