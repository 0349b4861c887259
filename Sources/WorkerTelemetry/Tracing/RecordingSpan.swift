internal import Synchronization
package import Tracing

/// A span of `RecordingTracer`: kept in memory until it ends, then given to the tracer's sink.
///
/// One that is not sampled only has a context to pass on.
package final class RecordingSpan: Span {
  /// What is known of a span when it starts.
  struct Start: Sendable {
    var parent: SpanContext?
    var kind: SpanKind
    /// Nanoseconds since 1970.
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

  /// What one span may hold, as the OpenTelemetry specification has it by default.
  private static let maxCount = 128

  private let outerContext: ServiceContext
  private let ownContext: SpanContext?
  private let start: Start?
  private let state: Mutex<State>

  /// - Parameters:
  ///   - name: what it is called at first.
  ///   - context: what it was started in.
  ///   - own: what names it; `nil` when the context is passed on as it is.
  ///   - start: what is known of it, or `nil` when it is not sampled.
  init(name: String, in context: ServiceContext, own: SpanContext? = nil, recording start: Start? = nil) {
    outerContext = context
    ownContext = own
    self.start = start
    state = Mutex(State(name: name, isRecording: start != nil))
  }

  /// For those who work under it; made when it is asked for, as most spans have nobody under them and contexts are
  /// copied to be changed.
  package var context: ServiceContext {
    guard let ownContext else { return outerContext }
    var context = outerContext
    context.spanContext = ownContext
    return context
  }

  /// Whether it is sampled and has not ended.
  package var isRecording: Bool { state.withLock { $0.isRecording } }

  package var operationName: String {
    get { state.withLock { $0.name } }
    set { state.withLock { $0.name = newValue } }
  }

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
    // Once it is OK it stays so.
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

  /// Gives the span away; later calls do nothing.
  package func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
    guard let start, let ownContext, let last = takeState() else { return }
    start.sink(
      FinishedSpan(
        name: last.name, context: ownContext, parent: start.parent, kind: start.kind, start: start.time,
        // The system's clock may be set back meanwhile.
        end: max(start.time, instant().nanosecondsSinceEpoch), attributes: last.attributes, events: last.events,
        links: last.links, status: last.status, droppedAttributeCount: last.droppedAttributeCount,
        droppedEventCount: last.droppedEventCount, droppedLinkCount: last.droppedLinkCount))
  }

  /// What was recorded, once; only the name stays.
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
