internal import ImageCodecs
internal import LibC

/// Chooses the next quality to try from the sizes of earlier trials.
///
/// The logarithm of the file size is nearly linear in the `coarseness` of the quality. Each trial is therefore
/// extrapolated from earlier ones: three trials are enough for most images, where bisection needs seven.
struct QualitySearch {
  /// The fraction of the limit that is close enough, as the gain of a better quality would not be visible.
  private static let enough = 0.985

  private let scale: QualityScale
  private let limit: Double
  /// The minimum quality that may be tried.
  private let floor: Int
  /// The number of trials by which the minimum quality must have been tried if nothing fits.
  private let trialsToFloor: Int
  private var failures: [(quality: Int, size: Double)] = []
  private var fit: (quality: Int, size: Double)?
  private var trialCount = 0
  /// The number of consecutive trials that fit, or minus the number that did not.
  private var run = 0

  init(scale: QualityScale, limit: UInt64, floor: Int, trialsToFloor: Int) {
    self.scale = scale
    self.limit = Double(limit)
    self.floor = floor
    self.trialsToFloor = trialsToFloor
  }

  /// Records the size of a trial.
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

  /// The next quality to try, above all that fit and below all that did not; `nil` if another trial is not worthwhile.
  var next: Int? {
    guard let last = failures.last, trialCount < ByteLimit.maxTrials else { return nil }
    if let fit {
      guard fit.quality + 1 < last.quality, fit.size < limit * Self.enough else { return nil }
      let slope = self.slope(from: (last.quality, last.size), to: fit)
      let aimed = quality(from: fit, slope: slope, aim: 0.995, within: fit.quality + 1...last.quality - 1)
      // The sizes of an image that was previously a JPEG change in steps, so the line errs in the same direction
      // repeatedly.
      let middle = (fit.quality + last.quality) / 2
      if run >= 2 { return max(aimed, (aimed + middle + 1) / 2) }
      return run <= -2 ? min(aimed, (aimed + middle) / 2) : aimed
    }
    guard last.quality > floor else { return nil }
    guard trialCount < trialsToFloor - 1 else { return floor }
    // If the first estimate failed, the image is atypical: later estimates use a larger margin.
    let aim = [0.97, 0.93, 0.85, 0.7, 0.5][min(failures.count, 5) - 1]
    let before = failures.dropLast().last
    let slope = before.map { min(1.2, max(0.5, self.slope(from: $0, to: last))) } ?? QualityScale.usualSlope
    let aimed = quality(from: last, slope: slope, aim: aim, within: floor...last.quality - 1)
    let maximum = last.quality * [8, 7, 4, 2][min(failures.count, 4) - 1] / 8
    return max(floor, min(aimed, maximum))
  }

  private func slope(from a: (quality: Int, size: Double), to b: (quality: Int, size: Double)) -> Double {
    let run = scale.coarseness(b.quality) - scale.coarseness(a.quality)
    return (log(a.size) - log(b.size)) / run
  }

  /// Returns the highest quality whose size, on the line through a trial, is at most `aim` times the limit.
  private func quality(
    from trial: (quality: Int, size: Double), slope: Double, aim: Double, within range: ClosedRange<Int>
  ) -> Int {
    let wanted = scale.coarseness(trial.quality) + (log(trial.size) - log(limit * aim)) / max(slope, 0.01)
    return range.last { scale.coarseness($0) >= wanted } ?? range.lowerBound
  }
}
