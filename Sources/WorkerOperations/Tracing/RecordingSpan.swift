internal import Synchronization
package import Tracing

/// A span of `RecordingTracer`: kept in memory until it ends, then given to the tracer's sink.
///
/// One that is not sampled only has a context to pass on.
package final class RecordingSpan: Span {
  /// What one span may hold, as the OpenTelemetry specification has it by default.
  private static let maxCount = 128

  package let context: ServiceContext
  private let state: Mutex<FinishedSpan?>
  private let name: Mutex<String>
  private let sink: @Sendable (FinishedSpan) -> Void

  /// - `span`: what is known at the start, or `nil` when it is not sampled.
  init(
    name: String, context: ServiceContext, recording span: FinishedSpan? = nil,
    sink: @escaping @Sendable (FinishedSpan) -> Void = { _ in }
  ) {
    self.name = Mutex(name)
    self.context = context
    self.sink = sink
    state = Mutex(span)
  }

  /// Whether it is sampled and has not ended.
  package var isRecording: Bool { state.withLock { $0 != nil } }

  package var operationName: String {
    get { name.withLock { $0 } }
    set { name.withLock { $0 = newValue } }
  }

  package var attributes: SpanAttributes {
    get { state.withLock { $0?.attributes ?? [:] } }
    set {
      state.withLock { span in
        guard newValue.count > Self.maxCount else {
          span?.attributes = newValue
          return
        }
        let kept = span?.attributes.count ?? 0
        span?.droppedAttributeCount += newValue.count - kept
      }
    }
  }

  package func setStatus(_ status: SpanStatus) {
    // Once it is OK it stays so.
    state.withLock { if $0?.status?.code != .ok { $0?.status = status } }
  }

  package func addEvent(_ event: SpanEvent) {
    state.withLock { span in
      guard let count = span?.events.count, count < Self.maxCount else {
        span?.droppedEventCount += 1
        return
      }
      span?.events.append(event)
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
    state.withLock { span in
      guard let count = span?.links.count, count < Self.maxCount else {
        span?.droppedLinkCount += 1
        return
      }
      span?.links.append(link)
    }
  }

  /// Gives the span away; later calls do nothing.
  package func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
    guard var span = state.withLock({ $0.take() }) else { return }
    span.name = operationName
    // The system's clock may be set back meanwhile.
    span.end = max(span.start, instant().nanosecondsSinceEpoch)
    sink(span)
  }
}
