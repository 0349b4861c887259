internal import ImageCodecs
internal import LibC

/// Chooses the next quality to try for the smallest result that reaches a similarity and fits a size limit.
///
/// The logarithm of the distance to the maximum score is nearly linear in the `coarseness` of the quality, so trials
/// are interpolated between earlier ones, or extrapolated from the last two while all of them failed, or all succeeded.
/// Small images and graphics are far from that, and are searched by bisection. Qualities are steps of a `QualityScale`.
///
/// Chroma may be reduced up to the quality from which it is not by default; where that does not reach the target, all
/// qualities have it at full size. Scores then have no jump between two qualities.
struct SimilaritySearch {
  /// The maximum number of trial encodes of one image, including the first: enough to find any of 100 qualities.
  static let maxTrials = 8
  /// The excess over the target that is close enough, as a lower quality would hardly reach it.
  private static let enough = 0.3
  /// The excess that is close enough if the first quality was predicted: another trial costs more than it saves.
  private static let enoughOfPrediction = 1.0
  /// The part of a sufficient excess at which trials aim.
  private static let aim = 0.4
  /// The number of trials after which the search stops extrapolating from trials that all failed, or all succeeded.
  private static let maxExtrapolations = 4
  /// By how much an extrapolation from two trials goes further than they predict.
  private static let overshoot = 1.5
  /// The coarseness that full chroma adds at equal scores: 0.37 to 0.75 for most photographs that need it.
  private static let fullChromaGain = 0.5
  /// By how much finer than with reduced chroma a predicted quality is that needs full chroma.
  private static let certainty = 0.15

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
  /// The trial before the last one, if both failed, or both succeeded.
  private var previous: (quality: Int, score: Double)?
  private var tooLarge: (quality: Int, size: Double)?
  private var trialCount = 0
  /// The number of those with reduced chroma, if it is not reduced any more.
  private var reducedCount = 0
  /// The number of consecutive trials that reached the score, or minus the number that did not.
  private var run = 0
  /// Whether the quality of the first trial was predicted by a sample.
  private let isPredicted: Bool
  /// Whether all qualities have chroma at full size.
  private(set) var hasFullChroma: Bool

  init(
    scale: QualityScale, target: SimilarityTarget, limit: UInt64, floor: Int, hasFullChroma: Bool,
    isPredicted: Bool = false
  ) {
    self.isPredicted = isPredicted
    self.hasFullChroma = hasFullChroma
    self.scale = scale
    self.target = target
    self.limit = Double(limit)
    self.floor = floor
    lowest = scale.step(1)
    highest =
      target.choosesChroma && !hasFullChroma
      ? scale.step(EncoderOptions.minQualityOfFullChroma) - 1 : scale.step(target.maxQuality)
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
      previous = above
      above = (quality, score)
      highest = min(highest, quality - 1)
      run = max(run, 0) + 1
    } else {
      previous = below
      below = (quality, score)
      lowest = max(lowest, quality + 1)
      run = min(run, 0) - 1
    }
  }

  /// Returns the next quality to try; `nil` if another trial is not worthwhile.
  mutating func next() -> Int? {
    let trialsLeft = Self.maxTrials - trialCount
    guard trialsLeft > 0 else { return nil }
    if let step = fillChroma(for: aimed) { return step }
    guard lowest <= highest else { return nil }
    guard let near = above ?? below else { return nextSmaller(trialsLeft: trialsLeft) }
    if let above, above.score < target.score + enough || highest - lowest < scale.minRange { return nil }
    if above == nil, tooLarge != nil { return nextBetweenLimits(near, trialsLeft: trialsLeft) }
    if let above, let below { return next(above, below, trialsLeft: trialsLeft) }
    let isLate = trialCount - reducedCount >= Self.maxExtrapolations
    if above == nil, trialsLeft == 1 || isLate { return highest }
    let extrapolated = extrapolated(from: near)
    // The highest quality alone shows that a target is out of reach.
    if above == nil, !canFillChroma, extrapolated >= highest - scale.step(1) { return highest }
    return isLate ? min(extrapolated, middle) : extrapolated
  }

  private var canFillChroma: Bool { target.choosesChroma && !hasFullChroma }

  /// Gives all qualities full chroma if none of those with less of it probably reaches a score.
  /// - `certainty`: The minimum coarseness by which they are probably too coarse.
  /// - Returns: The quality at which the score is probably reached; `nil` if chroma stays as it is.
  private mutating func fillChroma(for score: Double, certainty: Double = 0) -> Int? {
    guard canFillChroma, above == nil, let below else { return nil }
    let wanted =
      scale.coarseness(below.quality) + (distance(score) - distance(below.score)) / QualityScale.usualSlope
    let finest = scale.coarseness(scale.step(EncoderOptions.minQualityOfFullChroma) - 1)
    guard wanted < finest - certainty || trialCount >= Self.maxExtrapolations else { return nil }
    hasFullChroma = true
    reducedCount = trialCount
    (lowest, highest) = (scale.step(1), scale.step(target.maxQuality))
    (self.below, previous, run) = (nil, nil, 0)
    return scale.step(coarseness: wanted + Self.fullChromaGain, in: lowest...highest)
  }

  /// Returns the next quality to try from a trial, and from the one before it if both failed, or both succeeded.
  private func extrapolated(from near: (quality: Int, score: Double)) -> Int {
    let distance = distance(aimed) - distance(near.score)
    guard let previous else { return quality(from: near.quality, distance: distance) }
    let usual = QualityScale.usualSlope
    let slope = max(usual / 2, min(usual * 2, slope(near, previous)))
    return quality(from: near.quality, distance: distance * Self.overshoot * usual / slope)
  }

  /// The score at which trials aim.
  private var aimed: Double { min(100, target.score + enough * Self.aim) }

  private var enough: Double { isPredicted ? Self.enoughOfPrediction : Self.enough }

  private var middle: Int { (lowest + highest) / 2 }

  /// Returns the next quality to try below those that do not fit the size limit.
  private func nextSmaller(trialsLeft: Int) -> Int? {
    let minimum = max(lowest, floor)
    guard let tooLarge, minimum <= highest else { return nil }
    guard trialsLeft > 1 else { return minimum }
    let aimed = quality(from: tooLarge.quality, distance: log(tooLarge.size) - log(limit * 0.95))
    return max(minimum, searchable(aimed, trialsLeft: trialsLeft))
  }

  /// Returns the next quality to try above one whose score is too low and below one that does not fit the size limit.
  private func nextBetweenLimits(_ below: (quality: Int, score: Double), trialsLeft: Int) -> Int {
    let aimed = quality(from: below.quality, distance: distance(target.score) - distance(below.score))
    return searchable(aimed < highest ? aimed : middle, trialsLeft: trialsLeft)
  }

  /// Returns the next quality to try between two trials.
  private func next(
    _ above: (quality: Int, score: Double), _ below: (quality: Int, score: Double), trialsLeft: Int
  ) -> Int {
    var next = interpolated(above, below, at: aimed)
    // The line can err in the same direction repeatedly.
    if run >= 2 { next = min(next, (next + middle) / 2) }
    if run <= -2 { next = max(next, (next + middle + 1) / 2) }
    return searchable(next, trialsLeft: trialsLeft)
  }

  /// Returns the quality at which the score is probably that of the target, as far as it lies between those that are known
  /// to be too low and higher than needed; `nil` if there is no such quality.
  mutating func expected() -> Int? {
    if let step = fillChroma(for: target.score, certainty: Self.certainty) { return step }
    guard lowest <= highest, let near = above ?? below else { return nil }
    if let above, let below { return interpolated(above, below, at: target.score) }
    return quality(from: near.quality, distance: distance(target.score) - distance(near.score))
  }

  private func interpolated(
    _ above: (quality: Int, score: Double), _ below: (quality: Int, score: Double), at score: Double
  ) -> Int {
    quality(
      from: above.quality,
      distance: (distance(score) - distance(above.score)) / slope(above, below) * QualityScale.usualSlope)
  }

  /// By how much the distance to the maximum score rises per unit of coarseness between two trials.
  private func slope(_ one: (quality: Int, score: Double), _ other: (quality: Int, score: Double)) -> Double {
    (distance(other.score) - distance(one.score)) / (scale.coarseness(other.quality) - scale.coarseness(one.quality))
  }

  /// Returns the quality nearest to `quality` for which bisection can search either part with the trials that are left,
  /// if there is one.
  ///
  /// Fine steps are too many for that, and scores between them differ too little.
  private func searchable(_ quality: Int, trialsLeft: Int) -> Int {
    let bisected = 1 << (trialsLeft - 1) - 1
    let count = scale.steps == 1 && highest - lowest <= 2 * bisected ? bisected : highest - lowest
    return max(lowest, highest - count, min(quality, lowest + count, highest))
  }

  private func distance(_ score: Double) -> Double { log(max(0.05, 100 - score)) }

  /// Returns the lowest possible quality that is not coarser than `distance` at the usual slope from `quality`.
  private func quality(from quality: Int, distance: Double) -> Int {
    let wanted = scale.coarseness(quality) + distance / QualityScale.usualSlope
    return scale.step(coarseness: wanted, in: lowest...highest)
  }
}
