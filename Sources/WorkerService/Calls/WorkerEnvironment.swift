package import Admission
package import CoreMetrics
internal import GRPCCore
package import ImagePipeline
package import ResultCache
internal import Synchronization
package import Tracing
package import WorkThreads

/// The configuration and the shared state of all calls of one worker.
package struct WorkerEnvironment: Sendable {
  /// The limits of images and streams.
  package let limits: WorkerLimits
  /// The presets that requests can name; they can be replaced while the worker runs.
  package let presetStore: Replaceable<PresetCatalog>
  /// The overlays that requests can name; they can be replaced while the worker runs.
  package let overlays = Replaceable(AuxiliaryImages(cache: OverlayCache()))
  /// Whether requests may only name a preset and not override its fields.
  package var takesOnlyPresets = false
  /// Whether results may be written into the shared memory of clients.
  package var takesSharedMemory = false
  /// The cache of results; `nil` if results are not cached.
  package let cache: ResultCache?
  /// The memory budget shared by all images.
  package let memory: MemoryBudget
  /// The share of the memory that the unfinished uploads of each connection reserve.
  package let shares: ConnectionShares
  /// The threads that decode, resize and encode.
  package let executor: ImageExecutor
  /// The thread for small images while all of these are busy, and for headers that are only inspected.
  package let expressExecutor: ImageExecutor
  /// The processes that these threads work in; `nil` if they work in this process.
  package let helpers: HelperPool?
  /// The images that wait for one of these threads.
  package let threadQueue: ThreadQueue
  /// Whether the worker is shutting down, and the calls in progress.
  package let drain: DrainState
  /// The tracer that records the spans of calls and stages.
  package var tracer: any Tracer = InstrumentationSystem.tracer
  /// The maximum side of previews in pixels.
  package var maxPreviewSide = ImageReader.maxPreviewSide
  /// Returns the id of a context's trace for reports; `nil` if the context is not traced.
  package var traceID: @Sendable (ServiceContext) -> String? = { _ in nil }
  /// Returns whether the tracer records the spans of a context.
  package var isTraced: @Sendable (ServiceContext) -> Bool = { _ in true }
  /// Returns the deadline of a context's call; `nil` if its client set none.
  package var deadline: @Sendable (ServiceContext) -> ContinuousClock.Instant? = { _ in nil }
  /// The accounts of callers; `nil` if callers are not identified.
  package var callers: CallerAccounts?
  /// Returns the name of the caller in a context; `nil` if it was not identified.
  package var callerName: @Sendable (ServiceContext) -> String? = { _ in nil }
  /// Called when an image thread starts (`true`) or stops working.
  package var noteWork: @Sendable (Bool) -> Void = { _ in }
  /// Receives the time for which an image thread has worked, in the context of its call.
  package var worked: @Sendable (Duration, ServiceContext?) -> Void = { _, _ in }
  /// Keeps an object until the response of the current call has been sent, or was lost.
  package var keep: @Sendable (any AnyObject & Sendable) -> Void = { _ in }
  let metrics: WorkerMetrics
  let lastConfiguration = LastConfiguration()

  /// Creates the environment of a worker and starts its threads.
  ///
  /// - `memoryLimit`: the maximum memory of all images together, in bytes.
  /// - `receivesMessages`: whether the listener charges messages to that memory.
  /// - `threadCount`: the number of images processed at the same time.
  /// - `helpers`: the processes that images are worked on in; `nil` for this process.
  /// - `metrics`: receives the measurements.
  package init(
    limits: WorkerLimits = .defaults, presets: PresetCatalog = PresetCatalog(), cache: ResultCache? = nil,
    memoryLimit: Int = 768 << 20, receivesMessages: Bool = false, threadCount: Int, helpers: HelperPool? = nil,
    drain: DrainState = DrainState(), metrics: any MetricsFactory = NOOPMetricsHandler.instance
  ) {
    self.limits = limits
    presetStore = Replaceable(presets)
    self.cache = cache
    let metrics = WorkerMetrics(factory: metrics)
    memory = MemoryBudget(
      limit: memoryLimit, maxWaiting: limits.maxWaitingImages, receivesMessages: receivesMessages,
      waited: metrics.waited)
    shares = ConnectionShares(memoryLimit: memoryLimit)
    executor = ImageExecutor(threadCount: threadCount)
    self.helpers = helpers
    // Its work is short, and others wait for it: more priority than the other threads, less than the event loops.
    expressExecutor = ImageExecutor(threadCount: 1, niceness: 2)
    threadQueue = ThreadQueue(
      executor: executor, express: expressExecutor, memory: memory, maxWait: limits.maxQueueTime,
      maxPixelCount: Int(clamping: limits.image.maxPixels), waited: metrics.waited
    )
    self.drain = drain
    self.metrics = metrics
  }

  /// The presets that requests can currently name.
  package var presets: PresetCatalog { presetStore.value }

  /// The account of the current call's caller; `nil` if callers are not identified.
  var currentCaller: CallerAccount? {
    guard let callers else { return nil }
    return ServiceContext.current.flatMap(callerName).flatMap(callers.account(of:))
  }

  /// The client that an image of the current call is processed for.
  func imageCaller(peer: String, deadline: ContinuousClock.Instant? = nil) -> ImageCaller {
    ImageCaller(identity: ServiceContext.current.flatMap(callerName), peer: peer, deadline: deadline)
  }

  /// The id of the current call's trace; `nil` if the call is not traced.
  var currentTraceID: String? { ServiceContext.current.flatMap(traceID) }

  /// The deadline of the current call; `nil` if its client set none.
  var currentDeadline: ContinuousClock.Instant? { ServiceContext.current.flatMap(deadline) }
}

extension WorkerEnvironment {
  /// Runs the work of one call.
  ///
  /// Refuses it while the worker drains, cancels it with its client, and converts its errors to their wire form.
  ///
  /// - `oneImage`: whether an error of the call is that of an image and is recorded in its metrics.
  func serve<Result>(
    oneImage: Bool = false, _ body: (Cancellation) async throws -> Result
  ) async throws -> Result {
    let isCancelled = Mutex(false)
    do {
      return try await drain.withWork { cancellation in
        return try await withRPCCancellationHandler {
          try await body(cancellation)
        } onCancelRPC: {
          isCancelled.withLock { $0 = true }
          cancellation.cancel()
        }
      }
    } catch {
      let isCancelled = isCancelled.withLock { $0 }
      if oneImage { metrics.failed(error, isCancelled: isCancelled) }
      // What the transport throws when the client is gone is not a defect.
      let cause = isCancelled && !(error is PipelineError) ? PipelineError.cancelled : error
      throw WireError.status(any: drain.reason(cause))
    }
  }
}
