internal import Tracing

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

  /// Creates the exemplar of a value that is measured now; `nil` if the current trace is not recorded.
  init?(_ value: Double, context: ServiceContext? = .current) {
    guard let span = context?.spanContext, span.isSampled else { return nil }
    self.init(
      value: value, traceID: span.traceID, spanID: span.spanID, time: DefaultTracerClock.now.nanosecondsSinceEpoch)
  }

  init(value: Double, traceID: TraceID, spanID: SpanID, time: UInt64) {
    (self.value, self.traceID, self.spanID, self.time) = (value, traceID, spanID, time)
  }
}
