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

  /// - `memoryLimit`: bytes that all pictures together may hold.
  /// - `threadCount`: pictures that are worked on at the same moment.
  package init(
    limits: WorkerLimits = WorkerLimits(), presets: PresetCatalog = PresetCatalog(), memoryLimit: Int = 768 << 20,
    threadCount: Int, drain: DrainState = DrainState(), tracer: any Tracer = InstrumentationSystem.tracer
  ) {
    self.limits = limits
    self.presets = presets
    memory = MemoryBudget(limit: memoryLimit, maxWaiting: limits.maxWaitingPictures)
    executor = PictureExecutor(threadCount: threadCount)
    self.drain = drain
    self.tracer = tracer
  }
}
