/// Measures the time of a rendition's stages: each moment counts for one span, that of the stage that is running.
final class StageClock {
  private let meters: [StageMeter]
  private var current: StageSpan?
  /// The time at which counting for `current` started.
  private var since = ContinuousClock.now

  init(tracing: TraceTarget) {
    meters = StageSpan.allCases.map { StageMeter($0, tracing: tracing) }
  }

  /// Starts counting for `span`.
  /// - Returns: The interrupted span, to be passed to `leave`.
  func enter(_ span: StageSpan) -> StageSpan? {
    let interrupted = current
    if interrupted != span { count(for: span) }
    return interrupted
  }

  /// Resumes counting for the span that `enter` interrupted.
  func leave(to interrupted: StageSpan?) {
    if current != interrupted { count(for: interrupted) }
  }

  private func count(for span: StageSpan?) {
    let now = ContinuousClock.now
    if let current { meters[current.rawValue].add(since, now) }
    current = span
    since = if let span, meters[span.rawValue].startSpan() { .now } else { now }
  }

  /// Multiplies the time counted since the last call by `share`, 0 to 1: the part in which the thread had a CPU.
  func settle(_ share: Double) {
    for meter in meters { meter.settle(share) }
  }

  /// Ends a span and adds the attributes of its stage; later work is not counted.
  func finish(_ span: StageSpan, _ attributes: (inout StageMeter.Attributes) -> Void) {
    meters[span.rawValue].finish(attributes)
  }

  /// The busy time of each span.
  var timings: StageTimings {
    var timings = StageTimings()
    for span in StageSpan.allCases { timings[span] += meters[span.rawValue].busy }
    return timings
  }
}
