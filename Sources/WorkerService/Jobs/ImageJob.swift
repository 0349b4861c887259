internal import Admission
internal import FoundationEssentials
internal import ImagePipeline
internal import Tracing
internal import WorkThreads

/// The processing of one image, from its source to its sink.
///
/// A job belongs to one task. `ImageJob+Steps.swift` contains the individual steps.
final class ImageJob {
  let environment: WorkerEnvironment
  let renditions: [Rendition]
  let admission: any ImageAdmission
  let cancellation: Cancellation
  private let caller: ImageCaller
  /// The image of the caller's account that this job is a part of; `nil` if it is an image of its own.
  private let charged: CallerImage?
  let cache: JobCache?
  /// The images that overlays name.
  private let auxiliary: AuxiliaryImages
  /// Receives results from the cache.
  let results: any ResultSink
  /// Receives results that this job produces, and forwards them through the cache to `results`.
  let madeResults: any ResultSink

  /// The account of the caller; `nil` if callers are not identified.
  private let account: CallerAccount?
  let input: ImageInput
  /// See `ImageSource.lateOrientation`.
  private(set) lazy var lateOrientation = input.source.lateOrientation
  /// See `ImageSource.frameCount`; needed for a frame that is counted from the end.
  private(set) lazy var countedFrames = input.source.frameCount
  let work: ImageWork
  /// The headers of results whose format is not known before their first bytes, by the index of the rendition.
  var waitingHeaders: [Int: ImageInfo] = [:]
  var clock = JobClock()

  init(
    _ renditions: [Rendition], from source: any ImageSource, to sink: any ResultSink, admission: any ImageAdmission,
    environment: WorkerEnvironment, cancellation: Cancellation, caller: ImageCaller = ImageCaller(),
    charged: CallerImage? = nil
  ) {
    self.environment = environment
    self.renditions = renditions
    self.admission = admission
    self.cancellation = cancellation
    self.caller = caller
    self.charged = charged
    account = environment.currentCaller
    auxiliary = renditions.dropFirst().reduce(renditions[0].auxiliary) { $0.adding($1.auxiliary) }
    let channel = environment.makeChannel(for: caller, cancellation, auxiliary, isPreview: false)
    work = ImageWork(channel, memory: environment.memory)
    let input = ImageInput(source, maxByteCount: work.channel.maxByteCount, isHashed: environment.cache != nil)
    let metering = MeteringSink(sink, renditionCount: renditions.count, metrics: environment.metrics)
    let results: any ResultSink = renditions.contains { $0.memory != nil } ? SharedMemorySink(metering) : metering
    cache = environment.cache.map {
      JobCache(
        $0, of: renditions, from: input, to: results, metrics: environment.metrics, cancellation: cancellation)
    }
    self.input = input
    self.results = results
    madeResults = cache ?? results
  }

  /// Processes the image on the image executor until every rendition has ended.
  /// - Throws: `PipelineError` of the image or of its only result, or the errors of its source and its sink;
  ///   `overloaded` if too many images wait for a thread, or if its turn would come too late.
  func run() async throws {
    clock = JobClock()
    let cost = environment.threadQueue.costs.estimate(
      of: input.source.whole.map { ImageClaim($0.bytes) }, renditions.map(\.configuration), for: caller.connection)
    try charged?.reserve(cpuTime: cost.duration)
    input.charged = try charged ?? account?.beginImage(cpuTime: cost.duration)
    input.areBytesCharged = charged != nil
    input.charged?.use(byteCount: auxiliary.receivedByteCount)
    var held = Hold(budget: environment.memory)
    defer { held.release() }
    if auxiliaryByteCount == 0 { try held.grow(to: auxiliary.receivedByteCount) }
    let span = environment.tracer.startSpan("queue", ofKind: .internal)
    let queue = environment.threadQueue
    let place: ThreadQueue.Place
    do { place = try await queue.enter(caller, cost: cost, cancellation: cancellation) } catch {
      span.record(error)
      span.end()
      throw error
    }
    defer {
      queue.end(place, caller, used: clock.cpuTime)
      environment.worked(clock.worked, ServiceContext.current)
    }
    // The whole job runs on one executor: a change of threads costs more than the work between two windows.
    try await withTaskExecutorPreference(queue.executor(of: place.lane)) {
      queue.begin(place.lane)
      span.end()
      clock.queued = clock.began.duration(to: .now)
      defer { if let kept = work.helper?.kept { cache?.noteKept(in: kept) } }
      do {
        try input.charged?.checkCPUTime()
        try await process()
        queue.costs.learn(clock.cpuTime, for: cost)
        try cache?.keepMade()
      } catch {
        cache?.fail(error)
        throw error
      }
    }
  }

  /// The memory in bytes that the image keeps besides its working set: what its source keeps, and the images for overlays,
  /// unless they are so large that they are charged before the image is planned.
  var keptByteCount: Int { input.source.bufferedByteCount + auxiliaryByteCount }

  private var auxiliaryByteCount: Int {
    let byteCount = auxiliary.receivedByteCount
    return byteCount > ImageWork.headerByteCount ? 0 : byteCount
  }

  /// Runs CPU work of the image, measures it, and charges it to the caller.
  func worked<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
    let (began, cpuTime) = (ContinuousClock.now, ThreadClock.now)
    environment.noteWork(true)
    defer {
      environment.noteWork(false)
      clock.worked += began.duration(to: .now)
      let used = ThreadClock.now - cpuTime + (work.helper?.takeCPUTime() ?? .zero)
      clock.cpuTime += used
      input.charged?.use(cpuTime: used)
    }
    return try body()
  }

  /// Runs the steps of the job in order.
  private func process() async throws {
    try await input.fetch()
    guard try await lookUp() == .missing else { return }
    let plan = try await readHeader()
    if !work.isStarted, plan.hasResults {
      let reservation = try await admit(plan)
      guard try await lookUpUpload() == .missing else { return }
      try start(reservation)
    }
    try await sendHeaders(plan)
    try await deliver()
    while !work.hasEnded {
      try decode()
      try await deliver()
      try await refill()
    }
  }
}
