package import ServiceContextModule
package import Tracing

/// The time of one kind of work and its trace span: one span for the whole image, from its first work to its last.
final class StageMeter {
  private let name: String
  private let tracer: any Tracer
  private let context: ServiceContext
  private let observer: WorkObserver?
  private let renditionID: String?
  private let isPreview: Bool
  private var span: (any Span)?
  /// Time spent working; waiting for bytes is not counted, nor, once it is settled, waiting for a CPU.
  private(set) var busy: Duration = .zero
  private var settled: Duration = .zero
  /// Whether the span has ended; its time then stays what the span shows.
  private var isFinished = false

  init(_ span: StageSpan, tracing: TraceTarget) {
    name = span.name
    tracer = tracing.tracer
    context = tracing.context
    observer = tracing.observer
    renditionID = tracing.renditionID
    isPreview = tracing.isPreview
  }

  /// Notes that work begins; the first call starts the span.
  func begin() -> ContinuousClock.Instant {
    startSpan()
    return .now
  }

  func end(_ began: ContinuousClock.Instant) { add(began, .now) }

  /// Starts the span.
  /// - Returns: whether it was not started before.
  @discardableResult
  func startSpan() -> Bool {
    guard span == nil, !isFinished else { return false }
    span = tracer.startSpan(name, context: context, ofKind: .internal)
    return true
  }

  /// Counts a portion of work.
  func add(_ began: ContinuousClock.Instant, _ ended: ContinuousClock.Instant) {
    guard !isFinished else { return }
    busy += began.duration(to: ended)
    observer?(name, began, ended)
  }

  /// Keeps a share, 0 to 1, of the time since it was settled last: that in which the thread had a CPU.
  func settle(_ share: Double) {
    guard !isFinished else { return }
    settled += (busy - settled) * share
    busy = settled
  }

  /// Ends the span with the stage's attributes; later work would not be seen.
  func finish(_ attributes: (inout Attributes) -> Void) {
    isFinished = true
    guard let span = self.span.take() else { return }
    var all = Attributes(minimumCapacity: Self.attributeCount)
    all["imageworker.busy_ns"] = .int64(Int64(busy.nanoseconds))
    if let renditionID { all["imageworker.rendition_id"] = .string(renditionID) }
    if isPreview { all["imageworker.is_preview"] = .bool(true) }
    attributes(&all)
    span.attributes = SpanAttributes(all)
    span.end()
  }

  /// A dictionary of the right size from the start: one that grows under each attribute is hashed anew again and again.
  typealias Attributes = [String: SpanAttribute]
  private static let attributeCount = 8

  deinit {
    // Only an image that failed or was cancelled leaves its spans open.
    guard let span else { return }
    span.attributes["imageworker.busy_ns"] = busy.nanoseconds
    if let renditionID { span.attributes["imageworker.rendition_id"] = renditionID }
    if isPreview { span.attributes["imageworker.is_preview"] = true }
    span.setStatus(SpanStatus(code: .error, message: "the image was abandoned"))
    span.end()
  }
}

/// Told of each portion of work that a stage did, on the thread that did it.
package typealias WorkObserver =
  @Sendable (
    _ stage: String, _ began: ContinuousClock.Instant, _ ended: ContinuousClock.Instant
  ) -> Void

/// Where an image's spans go: the tracer, and the context whose span is their parent.
package struct TraceTarget: Sendable {
  let tracer: any Tracer
  let context: ServiceContext
  let observer: WorkObserver?
  /// The rendition that a stage works for; `nil` for what all of them share, and where there is but one.
  var renditionID: String?
  /// Whether stages work for a preview, of which the image's result has nothing.
  let isPreview: Bool

  /// - Parameters:
  ///   - tracer: the process' tracer unless given.
  ///   - context: the current task's unless given.
  ///   - observer: told of every strip's work, which spans sum up.
  ///   - isPreview: whether the stages work for a preview; no unless given.
  package init(
    tracer: any Tracer = InstrumentationSystem.tracer,
    context: ServiceContext = ServiceContext.current ?? .topLevel, observer: WorkObserver? = nil,
    isPreview: Bool = false
  ) {
    self.tracer = tracer
    self.context = context
    self.observer = observer
    self.isPreview = isPreview
  }

  /// The target for stages that work for one of several renditions.
  func of(rendition id: String?) -> TraceTarget {
    var target = self
    target.renditionID = id
    return target
  }
}

extension Duration {
  /// Whole nanoseconds; stages are far below the 292 years that fit.
  var nanoseconds: Int {
    Int(components.seconds) * 1_000_000_000 + Int(components.attoseconds / 1_000_000_000)
  }
}
