internal import Synchronization
package import Tracing

/// A span of `RecordingTracer`, kept in memory until it ends and then passed to the tracer's sink.
///
/// A span that is not sampled only has a context to propagate.
package final class RecordingSpan: Span {
  /// The properties of a span at its start.
  struct Start: Sendable {
    var parent: SpanContext?
    var kind: SpanKind
    /// Start time in nanoseconds since 1970.
    var time: UInt64
    var sink: @Sendable (FinishedSpan) -> Void
  }

  private struct State {
    var name: String
    var isRecording: Bool
    var attributes: SpanAttributes = [:]
    var events: [SpanEvent] = []
    var links: [SpanLink] = []
    var status: SpanStatus?
    var droppedAttributeCount = 0
    var droppedEventCount = 0
    var droppedLinkCount = 0
  }

  /// Maximum number of attributes, of events and of links per span: the OpenTelemetry specification's default.
  private static let maxCount = 128

  private let outerContext: ServiceContext
  private let ownContext: SpanContext?
  private let start: Start?
  private let state: Mutex<State>

  /// Creates a span.
  ///
  /// - Parameters:
  ///   - name: The initial operation name.
  ///   - context: The context that the span was started in.
  ///   - own: The identifiers of the span; `nil` if `context` is propagated unchanged.
  ///   - start: The start properties; `nil` if the span is not sampled.
  init(name: String, in context: ServiceContext, own: SpanContext? = nil, recording start: Start? = nil) {
    outerContext = context
    ownContext = own
    self.start = start
    state = Mutex(State(name: name, isRecording: start != nil))
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
  package var isRecording: Bool { state.withLock { $0.isRecording } }

  /// The name of the span; it can be changed until the span ends.
  package var operationName: String {
    get { state.withLock { $0.name } }
    set { state.withLock { $0.name = newValue } }
  }

  /// The attributes; a new set of more than `maxCount` is discarded, and its additions are counted as dropped.
  package var attributes: SpanAttributes {
    get { state.withLock { $0.attributes } }
    set {
      record { state in
        guard newValue.count > Self.maxCount else {
          state.attributes = newValue
          return
        }
        state.droppedAttributeCount += newValue.count - state.attributes.count
      }
    }
  }

  package func setStatus(_ status: SpanStatus) {
    // A status of OK is final.
    record { if $0.status?.code != .ok { $0.status = status } }
  }

  package func addEvent(_ event: SpanEvent) {
    record { state in
      guard state.events.count < Self.maxCount else {
        state.droppedEventCount += 1
        return
      }
      state.events.append(event)
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
    record { state in
      guard state.links.count < Self.maxCount else {
        state.droppedLinkCount += 1
        return
      }
      state.links.append(link)
    }
  }

  /// Ends the span and passes it to the sink; later calls have no effect.
  package func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
    guard let start, let ownContext, let last = takeState() else { return }
    start.sink(
      FinishedSpan(
        name: last.name, context: ownContext, parent: start.parent, kind: start.kind, start: start.time,
        // The system clock may have been set back in the meantime.
        end: max(start.time, instant().nanosecondsSinceEpoch), attributes: last.attributes, events: last.events,
        links: last.links, status: last.status, droppedAttributeCount: last.droppedAttributeCount,
        droppedEventCount: last.droppedEventCount, droppedLinkCount: last.droppedLinkCount))
  }

  /// Returns the recorded state once and keeps only the name.
  private func takeState() -> State? {
    state.withLock { state in
      guard state.isRecording else { return nil }
      defer { state = State(name: state.name, isRecording: false) }
      return state
    }
  }

  private func record(_ change: (inout State) -> Void) {
    state.withLock { if $0.isRecording { change(&$0) } }
  }
}
