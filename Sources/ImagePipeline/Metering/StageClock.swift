/// The time that a rendition's stages work: each moment counts for one span, that of the stage that works then.
final class StageClock {
  private let meters: [StageMeter]
  private var current: StageSpan?
  /// When `current` began to be counted.
  private var since = ContinuousClock.now

  init(tracing: TraceTarget) {
    meters = StageSpan.allCases.map { StageMeter($0, tracing: tracing) }
  }

  /// Counts for `span` from now on.
  /// - Returns: what was counted for before, which `leave` takes.
  func enter(_ span: StageSpan) -> StageSpan? {
    let interrupted = current
    if interrupted != span { count(for: span) }
    return interrupted
  }

  /// Counts again for what `enter` interrupted.
  func leave(to interrupted: StageSpan?) {
    if current != interrupted { count(for: interrupted) }
  }

  private func count(for span: StageSpan?) {
    let now = ContinuousClock.now
    if let current { meters[current.rawValue].add(since, now) }
    current = span
    since = if let span, meters[span.rawValue].startSpan() { .now } else { now }
  }

  /// Keeps a share, 0 to 1, of the time since it was settled last: that in which the thread had a CPU.
  func settle(_ share: Double) {
    for meter in meters { meter.settle(share) }
  }

  /// Ends a span with its stage's attributes; later work would not be seen.
  func finish(_ span: StageSpan, _ attributes: (inout StageMeter.Attributes) -> Void) {
    meters[span.rawValue].finish(attributes)
  }

  /// How long each span was worked for.
  var timings: StageTimings {
    var timings = StageTimings()
    for span in StageSpan.allCases { timings[span] += meters[span.rawValue].busy }
    return timings
  }
}
