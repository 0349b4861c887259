package import Tracing

/// A span that has ended, as exporters take it.
package struct FinishedSpan: Sendable {
  package var name: String
  package var context: SpanContext
  package var parent: SpanContext?
  package var kind: SpanKind
  /// Nanoseconds since 1970.
  package var start: UInt64
  /// Nanoseconds since 1970, no less than `start`.
  package var end: UInt64
  package var attributes: SpanAttributes
  package var events: [SpanEvent]
  package var links: [SpanLink]
  package var status: SpanStatus?
  /// What was left out because there was too much of it.
  var droppedAttributeCount = 0
  var droppedEventCount = 0
  var droppedLinkCount = 0
}
