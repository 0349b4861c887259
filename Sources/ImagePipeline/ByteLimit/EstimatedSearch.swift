internal import ImageCodecs
internal import LibC

/// Chooses the next quality of a JPEG to try for a size limit, from the sizes of earlier trials and from estimates.
///
/// An estimate takes a tenth of the time of a trial, and is right to about one percent, or to a quarter of that near a
/// trial. So most images need one or two trials. Qualities are steps of a `QualityScale`.
struct EstimatedSearch {
  /// The fraction of the limit that is close enough, as the gain of a better quality would not be visible.
  private static let enough = 0.985
  /// The fractions of the limit to aim at after so many trials that did not fit, and between trials.
  private static let aims = (failures: [0.993, 0.99, 0.97, 0.9, 0.5], between: 0.997)
  /// The maximum number of estimates for a trial.
  private static let maxEstimates = 8
  /// The minimum number of steps between two trials that fit.
  private static let minGain = 3
  /// The distance of the logarithms of sizes that is close enough for an estimate.
  private static let tolerance = 0.004

  private let scale: QualityScale
  private var estimates: SizeEstimates
  private let limit: Double
  /// The minimum quality that may be tried.
  private let floor: Int
  /// The number of trials by which the minimum quality must have been tried if nothing fits.
  private let trialsToFloor: Int
  private var failures: [Trial] = []
  private var fit: Trial?
  private var trialCount = 0

  /// A trial or an estimate.
  private struct Trial {
    let step: Int
    /// The logarithm of the size.
    let size: Double
  }

  init(scale: QualityScale, estimates: SizeEstimates, limit: UInt64, floor: Int, trialsToFloor: Int) {
    self.scale = scale
    self.estimates = estimates
    self.limit = log(Double(limit))
    self.floor = floor
    self.trialsToFloor = trialsToFloor
  }

  /// Records the size of a trial.
  mutating func note(step: Int, byteCount: UInt64) {
    trialCount += 1
    let trial = Trial(step: step, size: log(max(1, Double(byteCount))))
    estimates.note(step: step, size: trial.size)
    if trial.size <= limit { fit = trial } else { failures.append(trial) }
  }

  /// Returns the next quality to try, above all that fit and below all that did not; `nil` if another trial is not
  /// worthwhile.
  mutating func next() throws(CodecError) -> Int? {
    guard let last = failures.last, trialCount < ByteLimit.maxTrials else { return nil }
    guard let fit else {
      guard last.step > floor else { return nil }
      guard trialCount < trialsToFloor - 1 else { return floor }
      let aim = Self.aims.failures[min(failures.count, Self.aims.failures.count) - 1]
      return try step(nil, last, aim: limit + log(aim))
    }
    guard fit.step + 1 < last.step, fit.size < limit + log(Self.enough) else { return nil }
    let next = try step(fit, last, aim: limit + log(Self.aims.between))
    return next - fit.step < Self.minGain ? nil : next
  }

  /// Returns the highest quality whose estimated size is at most `aim`, or the lowest that is left, between a trial that
  /// is smaller than that, if there is one, and a trial that is larger.
  private mutating func step(_ fit: Trial?, _ failure: Trial, aim: Double) throws(CodecError) -> Int {
    var (low, high, slope) = (fit, failure, QualityScale.usualSlope)
    for step in estimates.steps where step > low?.step ?? (floor - 1) && step < high.step {
      let known = Trial(step: step, size: try estimates.size(step))
      if known.size > aim { high = known } else { low = known }
    }
    for round in 1...Self.maxEstimates {
      if let low, low.size > aim - Self.tolerance { break }
      let (lowest, highest) = (low.map { $0.step + 1 } ?? floor, high.step - 1)
      guard lowest <= highest else { break }
      var next = (lowest + highest) / 2
      // Sizes jump where the chroma planes change, so some estimates halve the range.
      if round % 4 != 0 || low == nil {
        let wanted = scale.coarseness(high.step) + distance(low, high, aim: aim, slope: slope)
        next = scale.step(coarseness: wanted, in: lowest...highest)
      }
      let found = Trial(step: next, size: try estimates.size(next))
      if found.size > aim {
        let run = scale.coarseness(next) - scale.coarseness(high.step)
        slope = min(1.5, max(0.3, (high.size - found.size) / run))
        high = found
      } else {
        low = found
      }
    }
    return low?.step ?? floor
  }

  /// Returns the distance from the coarseness of `high` to that of the size `aim`.
  private func distance(_ low: Trial?, _ high: Trial, aim: Double, slope: Double) -> Double {
    guard let low else { return (high.size - aim) / slope * 1.05 + 0.002 }
    let run = scale.coarseness(low.step) - scale.coarseness(high.step)
    return (high.size - aim + Self.tolerance / 2) / (high.size - low.size) * run
  }
}
