package import Tracing

/// A tracer that reads W3C trace context, and passes ended spans to a sink.
package struct RecordingTracer: Tracer {
  private let sampler: Sampler
  private let readsTraceContext: Bool
  private let sink: (@Sendable (FinishedSpan) -> Void)?

  /// Creates a tracer.
  ///
  /// - Parameters:
  ///   - sampler: The policy that selects the traces to record.
  ///   - readsTraceContext: Whether the parent of a call's span is read from `traceparent` and `tracestate`.
  ///   - sink: The receiver of each ended span, called on the thread that ended it, so it must be fast. Without a sink,
  ///     contexts are propagated unchanged.
  package init(
    sampler: Sampler = .parentBased(root: .alwaysOn), readsTraceContext: Bool = true,
    sink: (@Sendable (FinishedSpan) -> Void)?
  ) {
    self.sampler = sampler
    self.readsTraceContext = readsTraceContext
    self.sink = sink
  }

  package func startSpan<Instant: TracerInstant>(
    _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind,
    at instant: @autoclosure () -> Instant, function: String, file fileID: String, line: UInt
  ) -> RecordingSpan {
    let context = context()
    guard let sink else { return RecordingSpan(name: operationName, in: context) }
    let parent = context.spanContext
    let traceID = parent?.traceID ?? .random()
    var flags = parent?.flags ?? .random
    let isSampled = sampler.isSampled(traceID, parent: parent)
    if isSampled { flags.insert(.sampled) } else { flags.remove(.sampled) }
    let own = SpanContext(traceID: traceID, spanID: .random(), flags: flags, state: parent?.state ?? TraceState())
    guard isSampled else { return RecordingSpan(name: operationName, in: context, own: own) }
    let start = instant().nanosecondsSinceEpoch
    return RecordingSpan(
      name: operationName, in: context, own: own,
      recording: FinishedSpan(
        name: operationName, context: own, parent: parent, kind: kind, start: start, end: start), sink: sink)
  }

  /// Does nothing; the owner of the sink flushes what is on its way to the collector.
  package func forceFlush() {}

  package func extract<Carrier, Extract: Extractor>(
    _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
  ) where Extract.Carrier == Carrier {
    guard readsTraceContext,
      var span = extractor.extract(key: "traceparent", from: carrier).flatMap(SpanContext.init(traceparent:))
    else { return }
    if let state = extractor.extract(key: "tracestate", from: carrier) { span.state = TraceState(header: state) }
    context.spanContext = span
  }

  /// Does nothing: the worker makes no calls that belong to a trace.
  package func inject<Carrier, Inject: Injector>(
    _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
  ) where Inject.Carrier == Carrier {}
}
