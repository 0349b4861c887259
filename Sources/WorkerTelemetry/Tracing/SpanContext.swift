package import Tracing

/// What names a span to others: in its own process, and in the headers of calls.
///
/// Source: W3C Trace Context, levels 1 and 2.
package struct SpanContext: Hashable, Sendable {
  /// The flags of a `traceparent`.
  struct Flags: OptionSet, Hashable, Sendable {
    let rawValue: UInt8

    /// The caller may record the trace.
    static let sampled = Flags(rawValue: 1)
    /// The trace id is random, so that it can be sampled by.
    static let random = Flags(rawValue: 2)
  }

  /// The id of the trace.
  package var traceID: TraceID
  /// The id of the span.
  package var spanID: SpanID
  var flags: Flags
  var state: TraceState = TraceState()
  /// Whether it came from another process.
  var isRemote = false

  /// Whether the span is recorded.
  package var isSampled: Bool { flags.contains(.sampled) }
}

extension SpanContext {
  /// Reads a `traceparent`.
  ///
  /// `nil` when it is malformed. Of a version above 0 what version 0 knows is read.
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

  var traceparent: String { "00-\(traceID)-\(spanID)-\(flags.rawValue.hexadecimal)" }
}

private enum SpanContextKey: InstrumentationContextKey {
  typealias Value = SpanContext
  static var nameOverride: String? { "span-context" }
}

extension InstrumentationContext {
  /// The span that is current, or that the caller named.
  package var spanContext: SpanContext? {
    get { self[SpanContextKey.self] }
    set { self[SpanContextKey.self] = newValue }
  }

  /// The trace that is recorded here or by the caller, 32 hexadecimal digits; `nil` when none is.
  package var traceID: String? { spanContext.flatMap { $0.isSampled ? $0.traceID.description : nil } }
}
