package import Tracing

/// The identifiers of a span, as propagated within the process and read from the headers of calls.
///
/// Source: W3C Trace Context, levels 1 and 2.
package struct SpanContext: Hashable, Sendable {
  /// The flags of a `traceparent`.
  struct Flags: OptionSet, Hashable, Sendable {
    let rawValue: UInt8

    /// The caller may have recorded the trace.
    static let sampled = Flags(rawValue: 1)
    /// The trace identifier is random, so that samplers can use it.
    static let random = Flags(rawValue: 2)
  }

  /// The identifier of the trace.
  package var traceID: TraceID
  /// The identifier of the span.
  package var spanID: SpanID
  var flags: Flags
  var state: TraceState = TraceState()
  /// Whether the context came from another process.
  var isRemote = false

  /// Whether the span is recorded.
  package var isSampled: Bool { flags.contains(.sampled) }
}

extension SpanContext {
  /// Parses a `traceparent` header.
  ///
  /// `nil` if it is malformed. Of a version above 0, only the fields of version 0 are read.
  init?(traceparent: String) {
    let text = traceparent.utf8
    let fields = traceparent.split(separator: "-", maxSplits: 4, omittingEmptySubsequences: false).map(\.utf8)
    guard fields.count >= 4, let version = UInt8(hexadecimal: fields[0]), version != 0xff,
      version > 0 || text.count == 55,
      let traceID = TraceID(hexadecimal: fields[1]), let spanID = SpanID(hexadecimal: fields[2]),
      let flags = UInt8(hexadecimal: fields[3])
    else { return nil }
    self.init(
      traceID: traceID, spanID: spanID, flags: Flags(rawValue: flags).intersection([.sampled, .random]), isRemote: true)
  }
}

private enum SpanContextKey: InstrumentationContextKey {
  typealias Value = SpanContext
}

extension InstrumentationContext {
  /// The identifiers of the current span, or of the caller's span.
  package var spanContext: SpanContext? {
    get { self[SpanContextKey.self] }
    set { self[SpanContextKey.self] = newValue }
  }

  /// Whether the spans of the context are recorded.
  package var isTraced: Bool { spanContext?.isSampled ?? false }

  /// The identifier of a sampled trace, 32 hexadecimal digits; `nil` if the trace is not sampled.
  package var traceID: String? { spanContext.flatMap { $0.isSampled ? $0.traceID.description : nil } }
}
