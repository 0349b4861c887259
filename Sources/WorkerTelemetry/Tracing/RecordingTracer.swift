package import Tracing

/// A tracer that propagates W3C trace context and baggage, and passes ended spans to a sink.
package struct RecordingTracer: Tracer {
  /// The headers that the tracer reads and writes.
  package struct Propagation: OptionSet, Sendable {
    package let rawValue: Int

    package init(rawValue: Int) {
      self.rawValue = rawValue
    }

    /// The headers `traceparent` and `tracestate`.
    package static let traceContext = Propagation(rawValue: 1)
    /// The header `baggage`.
    package static let baggage = Propagation(rawValue: 2)
  }

  private let sampler: Sampler
  private let propagation: Propagation
  private let sink: (@Sendable (FinishedSpan) -> Void)?

  /// Creates a tracer.
  ///
  /// - Parameters:
  ///   - sampler: The policy that selects the traces to record.
  ///   - propagation: The headers to read and write.
  ///   - sink: The receiver of each ended span, called on the thread that ended it, so it must be fast. Without a sink,
  ///     contexts are propagated unchanged.
  package init(
    sampler: Sampler = .parentBased(root: .alwaysOn), propagation: Propagation = [.traceContext, .baggage],
    sink: (@Sendable (FinishedSpan) -> Void)?
  ) {
    self.sampler = sampler
    self.propagation = propagation
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
    if propagation.contains(.traceContext),
      var span = extractor.extract(key: "traceparent", from: carrier).flatMap(SpanContext.init(traceparent:))
    {
      if let state = extractor.extract(key: "tracestate", from: carrier) { span.state = TraceState(header: state) }
      context.spanContext = span
    }
    if propagation.contains(.baggage), let header = extractor.extract(key: "baggage", from: carrier) {
      context.baggage = Baggage(header: header)
    }
  }

  package func inject<Carrier, Inject: Injector>(
    _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
  ) where Inject.Carrier == Carrier {
    if propagation.contains(.traceContext), let span = context.spanContext {
      injector.inject(span.traceparent, forKey: "traceparent", into: &carrier)
      if !span.state.description.isEmpty {
        injector.inject(span.state.description, forKey: "tracestate", into: &carrier)
      }
    }
    if propagation.contains(.baggage), let baggage = context.baggage, !baggage.members.isEmpty {
      injector.inject(baggage.header, forKey: "baggage", into: &carrier)
    }
  }
}
