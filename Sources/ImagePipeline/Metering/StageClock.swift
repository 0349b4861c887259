internal import WorkThreads

/// The spans in which the work of stages is counted, by their names in traces; a trace contains at most one of each for an
/// image or rendition.
enum StageSpan: Int, CaseIterable {
  case decode, resize, filter, encode, rewrite

  /// The names by raw value.
  ///
  /// They are made once, as reflection takes about 7,000 instructions for each.
  static let names = allCases.map { "\($0)" }
}

/// The busy time of each stage of one image, without the time spent waiting for bytes or for a CPU.
package struct StageTimings: Sendable, Hashable {
  /// The time spent waiting for admission.
  package var queued: Duration = .zero
  /// The busy time of decoding.
  package var decode: Duration = .zero
  /// The busy time of resizing.
  package var resize: Duration = .zero
  /// The busy time of the requested filters.
  package var filter: Duration = .zero
  /// The busy time of color conversion, orientation and compression; of rewriting for an image that is passed through.
  package var encode: Duration = .zero
  /// The time from the first input byte to the last output byte, including all waiting.
  package var total: Duration = .zero

  package init() {}
}

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
    if let current { meters[current.rawValue].end(since, now) }
    current = span
    since = if let span { meters[span.rawValue].begin(now) } else { now }
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
    timings.resize = meters[StageSpan.resize.rawValue].busy
    timings.filter = meters[StageSpan.filter.rawValue].busy
    timings.encode = meters[StageSpan.encode.rawValue].busy
    return timings
  }
}

/// Measures the fraction of time in which the current thread had a CPU.
///
/// Stages read the wall clock for each strip, which costs 25 ns but also counts the time in which the system ran other
/// threads. The CPU clock of the thread needs a system call, which costs ten times as much. It is therefore read once
/// for each portion of bytes, and gives the fraction of the stages' time in that portion that was work. A portion on
/// another thread needs another clock.
struct WorkClock {
  private var wall = ContinuousClock.now
  private var cpu = ThreadClock.now

  /// Returns the fraction since the last reading, 0 to 1, and restarts the measurement.
  mutating func share() -> Double {
    let began = self
    self = WorkClock()
    let wallTime = began.wall.duration(to: wall)
    return wallTime > .zero ? min(1, max(0, (cpu - began.cpu) / wallTime)) : 1
  }
}
