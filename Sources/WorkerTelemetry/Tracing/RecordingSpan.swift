internal import Synchronization
package import Tracing

/// A span of `RecordingTracer`, kept in memory until it ends and then passed to the tracer's sink.
///
/// A span that is not sampled only has a context to propagate.
package final class RecordingSpan: Span {
  /// Maximum number of attributes, of events and of links per span: the OpenTelemetry specification's default.
  private static let maxCount = 128

  private let outerContext: ServiceContext
  private let ownContext: SpanContext?
  private let sink: @Sendable (FinishedSpan) -> Void
  /// The name, and what is recorded; `nil` if the span is not sampled, and once it has ended.
  private let state: Mutex<(name: String, span: FinishedSpan?)>

  /// Creates a span.
  ///
  /// - Parameters:
  ///   - name: The initial operation name.
  ///   - context: The context that the span was started in.
  ///   - own: The identifiers of the span; `nil` if `context` is propagated unchanged.
  ///   - span: The properties at the start; `nil` if the span is not sampled.
  ///   - sink: Receives the span when it has ended.
  init(
    name: String, in context: ServiceContext, own: SpanContext? = nil, recording span: FinishedSpan? = nil,
    sink: @escaping @Sendable (FinishedSpan) -> Void = { _ in }
  ) {
    outerContext = context
    ownContext = own
    self.sink = sink
    state = Mutex((name, span))
  }

  /// The context for work inside the span.
  ///
  /// It is created on demand, because most spans have no children and a context is copied to be changed.
  package var context: ServiceContext {
    guard let ownContext else { return outerContext }
    var context = outerContext
    context.spanContext = ownContext
    return context
  }

  /// Whether the span is sampled and has not ended.
  package var isRecording: Bool { state.withLock { $0.span != nil } }

  /// The name of the span; it can be changed until the span ends.
  package var operationName: String {
    get { state.withLock { $0.name } }
    set { state.withLock { $0.name = newValue } }
  }

  /// The attributes; a new set of more than `maxCount` is discarded, and its additions are counted as dropped.
  package var attributes: SpanAttributes {
    get { state.withLock { $0.span?.attributes ?? [:] } }
    set {
      record { span in
        if newValue.count > Self.maxCount {
          span.droppedAttributeCount += newValue.count - span.attributes.count
        } else {
          span.attributes = newValue
        }
      }
    }
  }

  package func setStatus(_ status: SpanStatus) {
    // A status of OK is final.
    record { if $0.status?.code != .ok { $0.status = status } }
  }

  package func addEvent(_ event: SpanEvent) {
    record { span in
      if span.events.count < Self.maxCount { span.events.append(event) } else { span.droppedEventCount += 1 }
    }
  }

  package func recordError<Instant: TracerInstant>(
    _ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant
  ) {
    guard isRecording else { return }
    var attributes = attributes
    attributes["exception.type"] = String(reflecting: type(of: error))
    attributes["exception.message"] = String(describing: error)
    addEvent(SpanEvent(name: "exception", at: instant(), attributes: attributes))
  }

  package func addLink(_ link: SpanLink) {
    record { span in
      if span.links.count < Self.maxCount { span.links.append(link) } else { span.droppedLinkCount += 1 }
    }
  }

  /// Ends the span and passes it to the sink; later calls have no effect.
  package func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
    guard
      var span = state.withLock({ state in
        state.span?.name = state.name
        return state.span.take()
      })
    else { return }
    // The system clock may have been set back in the meantime.
    span.end = max(span.start, instant().nanosecondsSinceEpoch)
    sink(span)
  }

  private func record(_ change: (inout FinishedSpan) -> Void) {
    state.withLock { state in
      guard var span = state.span.take() else { return }
      change(&span)
      state.span = span
    }
  }
}
