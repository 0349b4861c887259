internal import SwiftProtobuf
internal import Tracing
internal import WorkerProtocol

typealias OTLPSpan = Opentelemetry_Proto_Trace_V1_Span
typealias OTLPTraceRequest = Opentelemetry_Proto_Collector_Trace_V1_ExportTraceServiceRequest

extension OTLPTraceRequest {
  init(_ spans: [FinishedSpan], resource: OTLPResource) {
    self.init()
    resourceSpans = [
      .with { all in
        all.resource = resource
        all.schemaURL = SemanticConventions.schemaURL
        all.scopeSpans = [
          .with { scope in
            scope.scope = .worker
            scope.schemaURL = SemanticConventions.schemaURL
            scope.spans = spans.map(OTLPSpan.init)
          }
        ]
      }
    ]
  }
}

extension OTLPSpan {
  init(_ span: FinishedSpan) {
    self.init()
    traceID = span.context.traceID.bytes
    spanID = span.context.spanID.bytes
    traceState = span.context.state.description
    if let parent = span.parent { parentSpanID = parent.spanID.bytes }
    flags = Self.flags(span.context, isRemote: span.parent?.isRemote ?? false)
    name = span.name
    kind = OTLPSpan.SpanKind(span.kind)
    startTimeUnixNano = span.start
    endTimeUnixNano = span.end
    attributes = span.attributes.otlp
    droppedAttributesCount = UInt32(clamping: span.droppedAttributeCount)
    events = span.events.map(OTLPSpan.Event.init)
    droppedEventsCount = UInt32(clamping: span.droppedEventCount)
    links = span.links.compactMap(OTLPSpan.Link.init)
    droppedLinksCount = UInt32(clamping: span.droppedLinkCount)
    if let status = span.status {
      self.status.code = status.code == .ok ? .ok : .error
      self.status.message = status.message ?? ""
    }
  }

  /// The flags of the trace, and that it is known whether the other span lives in another process.
  fileprivate static func flags(_ context: SpanContext, isRemote: Bool) -> UInt32 {
    UInt32(context.flags.rawValue) | UInt32(Opentelemetry_Proto_Trace_V1_SpanFlags.contextHasIsRemoteMask.rawValue)
      | (isRemote ? UInt32(Opentelemetry_Proto_Trace_V1_SpanFlags.contextIsRemoteMask.rawValue) : 0)
  }
}

extension OTLPSpan.SpanKind {
  fileprivate init(_ kind: Tracing.SpanKind) {
    self =
      switch kind {
      case .server: .server
      case .client: .client
      case .producer: .producer
      case .consumer: .consumer
      case .internal: .internal
      }
  }
}

extension OTLPSpan.Event {
  fileprivate init(_ event: SpanEvent) {
    self.init()
    name = event.name
    timeUnixNano = event.nanosecondsSinceEpoch
    attributes = event.attributes.otlp
  }
}

extension OTLPSpan.Link {
  /// `nil` for a context that names no span.
  fileprivate init?(_ link: SpanLink) {
    guard let context = link.context.spanContext else { return nil }
    self.init()
    traceID = context.traceID.bytes
    spanID = context.spanID.bytes
    traceState = context.state.description
    flags = OTLPSpan.flags(context, isRemote: context.isRemote)
    attributes = link.attributes.otlp
  }
}
