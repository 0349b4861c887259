package import Tracing

/// A span that has ended, as exporters take it.
package struct FinishedSpan: Sendable {
  /// The name of the operation.
  package var name: String
  /// The identifiers of the span.
  package var context: SpanContext
  /// The identifiers of the parent; `nil` for a root span.
  package var parent: SpanContext?
  /// The role of the span, as in `server`.
  package var kind: SpanKind
  /// Nanoseconds since 1970.
  package var start: UInt64
  /// Nanoseconds since 1970, no less than `start`.
  package var end: UInt64
  /// The attributes of the span.
  package var attributes: SpanAttributes
  /// The events of the span, in order.
  package var events: [SpanEvent]
  /// The links to other spans.
  package var links: [SpanLink]
  /// The status; `nil` if none was set.
  package var status: SpanStatus?
  /// What was left out because there was too much of it.
  var droppedAttributeCount = 0
  var droppedEventCount = 0
  var droppedLinkCount = 0
}
