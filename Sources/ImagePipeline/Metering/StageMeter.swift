package import ServiceContextModule
package import Tracing

/// Measures the time of one kind of work and records its trace span.
///
/// There is one span for the whole image, from the start of its first work to the end of its last.
final class StageMeter {
  private let name: String
  private let tracer: any Tracer
  private let context: ServiceContext
  private let observer: WorkObserver?
  private let renditionID: String?
  private let isPreview: Bool
  private var span: (any Span)?
  private var hasBegun = false
  /// The time spent working.
  ///
  /// Time spent waiting for bytes is not counted, and `settle` removes the time spent waiting for a CPU.
  private(set) var busy: Duration = .zero
  private var settled: Duration = .zero
  /// Whether the span has ended; its time then no longer changes.
  private var isFinished = false

  init(_ span: StageSpan, tracing: TraceTarget) {
    name = StageSpan.names[span.rawValue]
    tracer = tracing.tracer
    context = tracing.context
    observer = tracing.observer
    renditionID = tracing.renditionID
    isPreview = tracing.isPreview
  }

  /// Marks the start of a portion of work; the first call starts the span, whose start is no work.
  /// - Returns: The time at which the portion starts, to be passed to `end`.
  func begin(_ now: ContinuousClock.Instant = .now) -> ContinuousClock.Instant {
    guard !hasBegun, !isFinished else { return now }
    hasBegun = true
    span = tracer.startSpan(name, context: context, ofKind: .internal)
    return .now
  }

  /// Counts a portion of work and reports it to the observer.
  func end(_ began: ContinuousClock.Instant, _ ended: ContinuousClock.Instant = .now) {
    guard !isFinished else { return }
    busy = busy + began.duration(to: ended)  // with +=, the access to the property is checked at runtime
    observer?(name, began, ended)
  }

  /// Multiplies the time counted since the last call by `share`, 0 to 1: the part in which the thread had a CPU.
  func settle(_ share: Double) {
    guard !isFinished else { return }
    settled += (busy - settled) * share
    busy = settled
  }

  /// Ends the span and adds the attributes of its stage; later work is not counted.
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

  /// The attributes of a span.
  ///
  /// The dictionary is created with its final capacity, because growing it would rehash its entries repeatedly.
  typealias Attributes = [String: SpanAttribute]
  private static let attributeCount = 8

  deinit {
    // Spans are still open only if the image failed or was cancelled.
    guard let span else { return }
    span.attributes["imageworker.busy_ns"] = busy.nanoseconds
    if let renditionID { span.attributes["imageworker.rendition_id"] = renditionID }
    if isPreview { span.attributes["imageworker.is_preview"] = true }
    span.setStatus(SpanStatus(code: .error, message: "the image was abandoned"))
    span.end()
  }
}

/// A function that is called after each portion of a stage's work, on the thread that performed it.
package typealias WorkObserver =
  @Sendable (
    _ stage: String, _ began: ContinuousClock.Instant, _ ended: ContinuousClock.Instant
  ) -> Void

/// The destination of an image's spans: the tracer, and the context that contains their parent span.
package struct TraceTarget: Sendable {
  /// The tracer.
  package let tracer: any Tracer
  /// The context of the parent span.
  package let context: ServiceContext
  let observer: WorkObserver?
  /// The name of the rendition that a stage works for.
  ///
  /// It is `nil` for stages that all renditions share, and for an image with one result.
  var renditionID: String?
  /// Whether the stages produce a preview instead of the result.
  package let isPreview: Bool

  /// Creates a trace target.
  /// - Parameters:
  ///   - tracer: The tracer; by default, that of the process.
  ///   - context: The context of the parent span; by default, that of the current task.
  ///   - observer: Called for the work on every strip, which spans only summarise.
  ///   - isPreview: Whether the stages produce a preview; `false` by default.
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
}

extension Duration {
  /// The duration in whole nanoseconds.
  ///
  /// Stage times are far below the 292 years that fit into the result.
  var nanoseconds: Int {
    Int(components.seconds) * 1_000_000_000 + Int(components.attoseconds / 1_000_000_000)
  }
}
