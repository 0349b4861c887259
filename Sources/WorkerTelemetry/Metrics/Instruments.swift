internal import CoreMetrics
internal import Synchronization
internal import Tracing

/// The value of one series at a point in time.
package enum MetricValue: Sendable, Equatable {
  case counter(Double)
  case gauge(Double)
  case histogram(HistogramValue)
}

/// The distribution of recorded values over the buckets between the bounds.
package struct HistogramValue: Sendable, Equatable {
  /// Upper bounds of the buckets, ascending and inclusive.
  package var bounds: [Double]
  /// Number of values per bucket, not cumulative; one more bucket than there are bounds.
  package var counts: [UInt64]
  /// Sum of all values.
  package var sum: Double = 0
  /// The last value of each bucket that was measured in a recorded trace; empty before the first one.
  package var exemplars: [Exemplar?] = []

  init(bounds: [Double]) {
    self.bounds = bounds
    counts = Array(repeating: 0, count: bounds.count + 1)
  }

  /// Number of values in all buckets.
  package var count: UInt64 { counts.reduce(0, +) }

  mutating func record(_ value: Double, exemplar: Exemplar? = nil) {
    // Bounds are inclusive: a value equal to a bound belongs to the bucket below it.
    let bucket = bounds.firstIndex { value <= $0 } ?? bounds.count
    counts[bucket] += 1
    sum += value
    guard let exemplar else { return }
    if exemplars.isEmpty { exemplars = Array(repeating: nil, count: counts.count) }
    exemplars[bucket] = exemplar
  }
}

/// An object that stores the value of one series.
protocol Instrument: AnyObject, Sendable {
  var value: MetricValue { get }
}

/// An instrument whose value only increases.
final class CounterInstrument: Instrument, CounterHandler, FloatingPointCounterHandler {
  private let total = Mutex(0.0)

  var value: MetricValue { .counter(total.withLock { $0 }) }

  func increment(by amount: Int64) { increment(by: Double(amount)) }

  func increment(by amount: Double) {
    // A decreasing counter would look like a counter that was reset.
    if amount > 0, amount.isFinite { total.withLock { $0 += amount } }
  }

  func reset() { total.withLock { $0 = 0 } }
}

/// An instrument that counts values by size.
final class HistogramInstrument: Instrument, RecorderHandler, TimerHandler {
  private let current: Mutex<HistogramValue>

  init(bounds: [Double]) {
    current = Mutex(HistogramValue(bounds: bounds))
  }

  var value: MetricValue { .histogram(current.withLock { $0 }) }

  func record(_ value: Int64) { record(Double(value)) }
  func record(_ value: Double) {
    guard value.isFinite else { return }
    let exemplar = Exemplar(value)
    current.withLock { $0.record(value, exemplar: exemplar) }
  }
  /// Durations are exported in seconds.
  func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }
}

/// A value of a histogram with the trace in which it was measured.
package struct Exemplar: Sendable, Equatable {
  /// The measured value, in the unit of the histogram.
  package var value: Double
  /// The trace in which it was measured.
  package var traceID: TraceID
  /// The span in which it was measured.
  package var spanID: SpanID
  /// The time of the measurement in nanoseconds since 1970.
  package var time: UInt64
}

extension Exemplar {
  /// Creates the exemplar of a value that is measured now; `nil` if the current trace is not recorded.
  init?(_ value: Double, context: ServiceContext? = .current) {
    guard let span = context?.spanContext, span.isSampled else { return nil }
    self.init(
      value: value, traceID: span.traceID, spanID: span.spanID, time: DefaultTracerClock.now.nanosecondsSinceEpoch)
  }
}
