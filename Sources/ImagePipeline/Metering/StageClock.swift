internal import Tracing
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

/// Measures the time of stages and records their trace spans: each moment counts for one span, that of the stage that is
/// running.
///
/// A span reaches from the start of its first work to the end of its last.
final class StageClock {
  private enum State {
    case waiting
    case open(any Span)
    /// Its time no longer changes.
    case ended
  }

  private struct Meter {
    var state = State.waiting
    /// The time spent working.
    ///
    /// Time spent waiting for bytes is not counted, and `settle` removes the time spent waiting for a CPU.
    var busy = Duration.zero
    var settled = Duration.zero

    var isOpen: Bool { if case .open = state { true } else { false } }
  }

  /// The attributes of a span.
  ///
  /// The dictionary is created with its final capacity, because growing it would rehash its entries repeatedly.
  typealias Attributes = [String: SpanAttribute]
  private static let attributeCount = 8

  private let tracing: TraceTarget
  private var meters = [Meter](repeating: Meter(), count: StageSpan.allCases.count)
  private var current: StageSpan?
  /// The time at which counting for `current` started.
  private var since = ContinuousClock.now

  init(tracing: TraceTarget) { self.tracing = tracing }

  deinit {
    // Spans are still open only if the image failed or was cancelled.
    for meter in meters {
      guard case .open(let span) = meter.state else { continue }
      span.attributes = SpanAttributes(attributes(of: meter))
      span.setStatus(SpanStatus(code: .error, message: "the image was abandoned"))
      span.end()
    }
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
    var now = ContinuousClock.now
    if let current, meters[current.rawValue].isOpen {
      meters[current.rawValue].busy += since.duration(to: now)
      tracing.observer?(StageSpan.names[current.rawValue], since, now)
    }
    if let span, case .waiting = meters[span.rawValue].state {
      let name = StageSpan.names[span.rawValue]
      meters[span.rawValue].state = .open(
        tracing.tracer.startSpan(name, context: tracing.context, ofKind: .internal))
      now = .now  // the start of a span is no work
    }
    (current, since) = (span, now)
  }

  /// Multiplies the time counted since the last call by `share`, 0 to 1: the part in which the thread had a CPU.
  func settle(_ share: Double) {
    for index in meters.indices where meters[index].isOpen {
      meters[index].settled += (meters[index].busy - meters[index].settled) * share
      meters[index].busy = meters[index].settled
    }
  }

  /// Ends a span and adds the attributes of its stage; later work is not counted.
  func finish(_ span: StageSpan, _ describe: (inout Attributes) -> Void) {
    let meter = meters[span.rawValue]
    meters[span.rawValue].state = .ended
    guard case .open(let span) = meter.state else { return }
    var all = attributes(of: meter)
    describe(&all)
    span.attributes = SpanAttributes(all)
    span.end()
  }

  /// The attributes that all spans have.
  private func attributes(of meter: Meter) -> Attributes {
    var all = Attributes(minimumCapacity: Self.attributeCount)
    all["imageworker.busy_ns"] = .int64(Int64(meter.busy.nanoseconds))
    if let renditionID = tracing.renditionID { all["imageworker.rendition_id"] = .string(renditionID) }
    if tracing.isPreview { all["imageworker.is_preview"] = .bool(true) }
    return all
  }

  /// The busy time of each span.
  var timings: StageTimings {
    func busy(_ span: StageSpan) -> Duration { meters[span.rawValue].busy }
    var timings = StageTimings()
    (timings.decode, timings.resize, timings.filter) = (busy(.decode), busy(.resize), busy(.filter))
    timings.encode = busy(.encode) + busy(.rewrite)
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

extension Duration {
  /// The duration in whole nanoseconds.
  ///
  /// Stage times are far below the 292 years that fit into the result.
  var nanoseconds: Int {
    Int(components.seconds) * 1_000_000_000 + Int(components.attoseconds / 1_000_000_000)
  }
}
