package import CoreMetrics
package import ImagePipeline
package import Tracing

/// What all calls of one worker share.
package struct WorkerEnvironment: Sendable {
  package let limits: WorkerLimits
  package let presets: PresetCatalog
  /// The memory that all pictures share.
  package let memory: MemoryBudget
  /// The threads that decode, resize and encode.
  package let executor: PictureExecutor
  package let drain: DrainState
  /// Where the stages' spans go.
  package let tracer: any Tracer
  /// The trace that a context belongs to, as reports name it; `nil` when it is not traced.
  package let traceID: @Sendable (ServiceContext) -> String?
  let metrics: WorkerMetrics

  /// - `memoryLimit`: bytes that all pictures together may hold.
  /// - `threadCount`: pictures that are worked on at the same moment.
  /// - `traceID`: what the tracer calls the trace of a context.
  /// - `metrics`: what measurements go to.
  package init(
    limits: WorkerLimits = WorkerLimits(), presets: PresetCatalog = PresetCatalog(), memoryLimit: Int = 768 << 20,
    threadCount: Int, drain: DrainState = DrainState(), tracer: any Tracer = InstrumentationSystem.tracer,
    traceID: @escaping @Sendable (ServiceContext) -> String? = { _ in nil },
    metrics: any MetricsFactory = NOOPMetricsHandler.instance
  ) {
    self.limits = limits
    self.presets = presets
    memory = MemoryBudget(limit: memoryLimit, maxWaiting: limits.maxWaitingPictures)
    executor = PictureExecutor(threadCount: threadCount)
    self.drain = drain
    self.tracer = tracer
    self.traceID = traceID
    self.metrics = WorkerMetrics(factory: metrics)
  }
}
