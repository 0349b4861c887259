package import Tracing

/// An ended span, in the form that exporters consume.
package struct FinishedSpan: Sendable {
  /// The name of the operation.
  package var name: String
  /// The identifiers of the span.
  package var context: SpanContext
  /// The identifiers of the parent; `nil` for a root span.
  package var parent: SpanContext?
  /// The role of the span, for example `server`.
  package var kind: SpanKind
  /// Start time in nanoseconds since 1970.
  package var start: UInt64
  /// End time in nanoseconds since 1970, not before `start`.
  package var end: UInt64
  /// The attributes of the span.
  package var attributes: SpanAttributes = [:]
  /// The events of the span, in order.
  package var events: [SpanEvent] = []
  /// The links to other spans.
  package var links: [SpanLink] = []
  /// The status; `nil` if none was set.
  package var status: SpanStatus?
  /// Number of attributes dropped because of the limit per span.
  var droppedAttributeCount = 0
  /// Number of events dropped because of the limit per span.
  var droppedEventCount = 0
  /// Number of links dropped because of the limit per span.
  var droppedLinkCount = 0
}
