public import ImagePipeline
public import Tracing

/// What all calls of one worker share.
public struct WorkerEnvironment: Sendable {
  public let limits: WorkerLimits
  public let presets: PresetCatalog
  /// The memory that all pictures share.
  public let memory: MemoryBudget
  /// The threads that decode, resize and encode.
  public let executor: PictureExecutor
  public let drain: DrainState
  /// Where the stages' spans go.
  public let tracer: any Tracer

  /// - Parameters:
  ///   - memoryLimit: bytes that all pictures together may hold.
  ///   - threadCount: pictures that are worked on at the same moment.
  public init(
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
