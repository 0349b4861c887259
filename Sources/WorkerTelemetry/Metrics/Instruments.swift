internal import CoreMetrics
internal import Synchronization

/// The value of one series at one moment.
package enum MetricValue: Sendable, Equatable {
  case counter(Double)
  case gauge(Double)
  case histogram(HistogramValue)
}

/// How often values fell between the bounds.
package struct HistogramValue: Sendable, Equatable {
  package var bounds: [Double]
  /// One more than there are bounds; not cumulative.
  package var counts: [UInt64]
  package var sum: Double = 0

  init(bounds: [Double]) {
    self.bounds = bounds
    counts = Array(repeating: 0, count: bounds.count + 1)
  }

  package var count: UInt64 { counts.reduce(0, +) }

  mutating func record(_ value: Double) {
    // A value equal to a bound lies below it.
    counts[bounds.firstIndex { value <= $0 } ?? bounds.count] += 1
    sum += value
  }
}

/// Something that holds one series' value.
protocol Instrument: AnyObject, Sendable {
  var value: MetricValue { get }
}

/// Only grows.
final class CounterInstrument: Instrument, CounterHandler, FloatingPointCounterHandler {
  private let total = Mutex(0.0)

  var value: MetricValue { .counter(total.withLock { $0 }) }

  func increment(by amount: Int64) { increment(by: Double(amount)) }

  func increment(by amount: Double) {
    // A counter that falls would be taken for one that began anew.
    if amount > 0, amount.isFinite { total.withLock { $0 += amount } }
  }

  func reset() { total.withLock { $0 = 0 } }
}

/// Holds what was set last.
final class GaugeInstrument: Instrument, RecorderHandler, MeterHandler {
  private let current = Mutex(0.0)

  var value: MetricValue { .gauge(current.withLock { $0 }) }

  func record(_ value: Int64) { set(Double(value)) }
  func record(_ value: Double) { set(value) }
  func set(_ value: Int64) { set(Double(value)) }
  func set(_ value: Double) { current.withLock { $0 = value } }
  func increment(by amount: Double) { current.withLock { $0 += amount } }
  func decrement(by amount: Double) { current.withLock { $0 -= amount } }
}

/// Counts values by size.
final class HistogramInstrument: Instrument, RecorderHandler, TimerHandler {
  private let current: Mutex<HistogramValue>

  init(bounds: [Double]) {
    current = Mutex(HistogramValue(bounds: bounds))
  }

  var value: MetricValue { .histogram(current.withLock { $0 }) }

  func record(_ value: Int64) { record(Double(value)) }
  func record(_ value: Double) { if value.isFinite { current.withLock { $0.record(value) } } }
  /// Times are exported in seconds.
  func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }
}
