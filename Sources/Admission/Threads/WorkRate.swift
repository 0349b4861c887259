/// The estimated CPU time of images that the threads get in a second, measured while images wait.
struct WorkRate {
  private static let interval = Duration.milliseconds(250)

  private let maxRate: Double
  private var rate: Double
  /// The beginning of the current interval; `nil` while no image waits.
  private var began: ContinuousClock.Instant?
  private var work = Duration.zero

  /// - `threadCount`: the number of threads for all images.
  /// - `expressCount`: the number of further threads, for small images.
  init(threadCount: Int, expressCount: Int) {
    maxRate = Double(threadCount + expressCount)
    rate = Double(threadCount)
  }

  /// Returns the time that work is expected to take.
  func time(for work: Duration) -> Duration { work / rate }

  mutating func begin(_ cost: Duration) { work += cost }

  mutating func measure(_ now: ContinuousClock.Instant, isBacklogged: Bool) {
    defer { if began == nil || !isBacklogged { (began, work) = (isBacklogged ? now : nil, .zero) } }
    guard let began, began.duration(to: now) >= Self.interval else { return }
    rate += (work / began.duration(to: now) - rate) * 0.3
    rate = min(max(rate, 0.05), maxRate)
    (self.began, work) = (now, .zero)
  }
}
