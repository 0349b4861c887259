package import ServiceContextModule
package import Tracing

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
