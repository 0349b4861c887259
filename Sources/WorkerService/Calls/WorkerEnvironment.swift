package import CoreMetrics
package import ImagePipeline
package import ResultCache
package import Tracing
package import WorkThreads

/// What all calls of one worker share.
package struct WorkerEnvironment: Sendable {
  package let limits: WorkerLimits
  package let presetStore: PresetStore
  /// Whether requests may name a preset and set nothing of their own.
  package let takesOnlyPresets: Bool
  /// Results that were made before; `nil` when none are kept.
  package let cache: ResultCache?
  /// The memory that all images share.
  package let memory: MemoryBudget
  /// What of it each connection's unfinished uploads have.
  package let shares: ConnectionShares
  /// The threads that decode, resize and encode.
  package let executor: ImageExecutor
  /// The images that wait for one of these threads.
  package let threadQueue: ThreadQueue
  package let drain: DrainState
  /// Where the stages' spans go.
  package let tracer: any Tracer
  /// The trace that a context belongs to, as reports name it; `nil` when it is not traced.
  package let traceID: @Sendable (ServiceContext) -> String?
  let metrics: WorkerMetrics

  /// - `memoryLimit`: bytes that all images together may hold.
  /// - `threadCount`: images that are worked on at the same moment.
  /// - `traceID`: what the tracer calls the trace of a context.
  /// - `metrics`: what measurements go to.
  package init(
    limits: WorkerLimits = WorkerLimits(), presets: PresetCatalog = PresetCatalog(), takesOnlyPresets: Bool = false,
    cache: ResultCache? = nil, memoryLimit: Int = 768 << 20, threadCount: Int, drain: DrainState = DrainState(),
    tracer: any Tracer = InstrumentationSystem.tracer,
    traceID: @escaping @Sendable (ServiceContext) -> String? = { _ in nil },
    metrics: any MetricsFactory = NOOPMetricsHandler.instance
  ) {
    self.limits = limits
    presetStore = PresetStore(presets)
    self.takesOnlyPresets = takesOnlyPresets
    self.cache = cache
    memory = MemoryBudget(limit: memoryLimit, maxWaiting: limits.maxWaitingImages)
    shares = ConnectionShares(memoryLimit: memoryLimit)
    executor = ImageExecutor(threadCount: threadCount)
    threadQueue = ThreadQueue(executor: executor, memory: memory)
    self.drain = drain
    self.tracer = tracer
    self.traceID = traceID
    self.metrics = WorkerMetrics(factory: metrics)
  }

  /// The presets that requests can name now.
  package var presets: PresetCatalog { presetStore.catalog }

  /// The trace of the call that is under way, when it is traced.
  var currentTraceID: String? { ServiceContext.current.flatMap(traceID) }
}
