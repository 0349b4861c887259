internal import Admission
internal import ImagePipeline
internal import Tracing

/// The processing of one image, from its source to its sink.
///
/// A job belongs to one task. `ImageJob+Steps.swift` contains the individual steps.
final class ImageJob {
  let environment: WorkerEnvironment
  let renditions: [Rendition]
  let admission: any ImageAdmission
  let cancellation: Cancellation
  private let caller: ImageCaller
  let cache: JobCache?
  /// Receives results from the cache.
  let results: any ResultSink
  /// Receives results that this job produces, and forwards them through the cache to `results`.
  let madeResults: any ResultSink

  let source: any ImageSource
  /// The account of the caller, and the source that charges it; `nil` if callers are not identified.
  private let charge: (account: CallerAccount, source: ChargedSource)?
  var input: SourceWindows
  /// See `ImageSource.lateOrientation`.
  private(set) lazy var lateOrientation = source.lateOrientation
  let work: ImageWork
  var clock = JobClock()

  init(
    _ renditions: [Rendition], from source: any ImageSource, to sink: any ResultSink, admission: any ImageAdmission,
    environment: WorkerEnvironment, cancellation: Cancellation, caller: ImageCaller = ImageCaller()
  ) {
    self.environment = environment
    self.renditions = renditions
    self.admission = admission
    self.cancellation = cancellation
    self.caller = caller
    let charge = environment.currentCaller.map { (account: $0, source: ChargedSource(source)) }
    self.charge = charge
    let source: any ImageSource = charge.map { $0.source as any ImageSource } ?? source
    let results = MeteringSink(sink, renditionCount: renditions.count, metrics: environment.metrics)
    let hashing = environment.cache == nil ? nil : HashingSource(source)
    let cache = environment.cache.flatMap { cache in
      hashing.map {
        JobCache(
          cache, of: renditions, from: $0, to: results, metrics: environment.metrics, cancellation: cancellation)
      }
    }
    self.results = results
    self.cache = cache
    madeResults = cache?.sink ?? results
    self.source = hashing ?? source
    let channel = environment.makeChannel(for: caller, cancellation, isPreview: false)
    work = ImageWork(channel, memory: environment.memory)
    input = SourceWindows(self.source, maxByteCount: work.maxByteCount)
  }

  /// Processes the image on the image executor until every rendition has ended.
  /// - Throws: `PipelineError` of the image or of its only result, or the errors of its source and its sink;
  ///   `overloaded` if too many images wait for a thread, or if its turn would come too late.
  func run() async throws {
    clock = JobClock()
    let cost = environment.threadQueue.costs.estimate(
      of: source.whole, renditions.map(\.configuration), for: caller.connection)
    if let charge { charge.source.image = try charge.account.beginImage(cpuTime: cost.duration) }
    let span = environment.tracer.startSpan("queue", ofKind: .internal)
    let queue = environment.threadQueue
    let place: ThreadQueue.Place
    do { place = try await queue.enter(caller, cost: cost, cancellation: cancellation) } catch {
      span.record(error)
      span.end()
      throw error
    }
    defer { queue.end(place, caller, worked: clock.worked) }
    // The whole job runs on one executor: a change of threads costs more than the work between two windows.
    try await withTaskExecutorPreference(queue.executor(of: place.lane)) {
      queue.begin(place.lane)
      span.end()
      clock.queued = clock.began.duration(to: .now)
      defer { if let kept = work.kept { cache?.noteKept(in: kept) } }
      do {
        try charge?.source.image?.checkCPUTime()
        try await process()
        queue.costs.learn(clock.worked, for: cost)
        try cache?.keepMade()
      } catch {
        cache?.fail(error)
        throw error
      }
    }
  }

  /// Runs CPU work of the image, measures it, and charges it to the caller.
  func worked<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
    let began = ContinuousClock.now
    defer { clock.worked += began.duration(to: .now) }
    guard let image = charge?.source.image else { return try body() }
    defer { image.use(cpuTime: work.takeRemoteCPUTime()) }
    return try image.measure(body)
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
