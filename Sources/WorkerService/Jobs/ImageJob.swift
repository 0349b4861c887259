internal import ImagePipeline
internal import Tracing

/// One image, from its source to its sink.
///
/// A job belongs to one task. `ImageJob+Steps.swift` holds what each step consists of.
final class ImageJob {
  let environment: WorkerEnvironment
  let renditions: [Rendition]
  let admission: any ImageAdmission
  let cancellation: Cancellation
  let cache: JobCache?
  let preview: PreviewFirstSink?
  /// Takes results that need not be made.
  let results: any ResultSink
  /// Takes results that are made: through the preview and the cache to `results`.
  let madeResults: any ResultSink

  let source: any ImageSource
  var input: SourceWindows
  var work: ImageWork
  var clock = JobClock()

  init(
    _ renditions: [Rendition], from source: any ImageSource, to sink: any ResultSink, admission: any ImageAdmission,
    environment: WorkerEnvironment, cancellation: Cancellation
  ) {
    self.environment = environment
    self.renditions = renditions
    self.admission = admission
    self.cancellation = cancellation
    let results = MeteringSink(sink, renditionCount: renditions.count, metrics: environment.metrics)
    let hashing = environment.cache == nil ? nil : HashingSource(source)
    let cache = environment.cache.flatMap { cache in
      hashing.map {
        JobCache(
          cache, of: renditions, from: $0, to: results, metrics: environment.metrics, cancellation: cancellation)
      }
    }
    let collected: any ResultSink = cache?.sink ?? results
    preview = renditions[0].preview.map {
      PreviewFirstSink(collected, preview: $0, environment: environment, cancellation: cancellation)
    }
    self.results = results
    self.cache = cache
    madeResults = preview ?? collected
    self.source = hashing ?? source
    input = SourceWindows(self.source)
    work = ImageWork(
      limits: environment.limits.image, memory: environment.memory, cancellation: cancellation,
      tracing: TraceTarget(tracer: environment.tracer))
  }

  /// Works on the image executor until every rendition has ended.
  /// - Throws: `PipelineError` of the image or of its one result, or what its source and its sink throw; `overloaded` where
  ///   too many images wait for a thread.
  func run() async throws {
    clock = JobClock()
    let span = environment.tracer.startSpan("queue", ofKind: .internal)
    do { try environment.threadQueue.enter() } catch {
      span.record(error)
      span.end()
      throw error
    }
    // The whole job runs there, as each change of threads costs more than what is done between two windows.
    try await withTaskExecutorPreference(environment.executor) {
      environment.threadQueue.leave()
      span.end()
      clock.queued = clock.began.duration(to: .now)
      do {
        try await process()
        try cache?.keepMade()
      } catch {
        cache?.fail(error)
        if let error = error as? PipelineError { await preview?.abandon(after: error) }
        throw error
      }
    }
  }

  /// What happens to an image, in order.
  private func process() async throws {
    try await input.fetch()
    guard try await lookUp() == .missing else { return }
    try await readHeader()
    if !plan.plans.isEmpty {
      let reservation = try await admit()
      guard try await lookUpUpload() == .missing else { return }
      try await start(reservation)
    }
    try await deliver()
    while !work.hasEnded {
      try decode()
      try await deliver()
      try await refill()
    }
  }
}
