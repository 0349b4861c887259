internal import FoundationEssentials
internal import ImagePipeline
internal import Tracing
internal import WorkerProtocol

/// Takes one picture from its upload to its reports: header, admission, decoding as bytes arrive, chunks out.
struct PictureProcessor: Sendable {
  /// What a rendition's result is made of, in this order: one header, chunks, one report.
  enum Part: Sendable {
    case header(ImageInfo)
    case chunk(Data)
    case report(ProcessingReport, traceID: String?)
    /// The header of a result that was kept.
    case cachedHeader(Imageworker_V1_ImageInfo)
    /// The report of a result that was kept.
    case cachedReport(Imageworker_V1_ProcessingReport)
    /// Why one of several renditions is not there, or no more of it; at any point.
    case failure(any Error)

    /// Whether no part of the rendition follows.
    var isLast: Bool {
      switch self {
      case .report, .cachedReport, .failure: true
      case .header, .cachedHeader, .chunk: false
      }
    }
  }

  let environment: WorkerEnvironment
  let renditions: [Rendition]
  let cancellation: Cancellation
  /// Sets memory aside for a plan, or refuses.
  let admit: @Sendable (Int) async throws(PipelineError) -> Reservation
  /// Takes a part, and whether another follows at once.
  let emit: @Sendable (Part, Rendition, _ isMoreReady: Bool) async throws -> Void

  /// The bytes that are worked on between two looks at the output: a strip of a large picture needs about as many.
  static let windowByteCount = 128 * 1024

  /// Works on the picture executor until every rendition has ended.
  /// - Parameter nextBytes: the next bytes of the picture, and whether none follow.
  /// - Throws: `PipelineError` of the picture or of its one result, or what `nextBytes` and `emit` throw.
  func run(nextBytes: () async throws -> (bytes: Data, isLast: Bool)) async throws {
    // The whole loop runs there, as each change of threads costs more than what is done between two windows.
    try await withTaskExecutorPreference(environment.executor) { try await work(nextBytes: nextBytes) }
  }

  private func work(nextBytes: () async throws -> (bytes: Data, isLast: Bool)) async throws {
    var preview = Preview(
      of: renditions[0].preview, environment: environment, cancellation: cancellation)
    do { try await work(nextBytes: nextBytes, &preview) } catch let error as PipelineError {
      await abandon(&preview, after: error)
      throw error
    }
  }

  private func work(
    nextBytes: () async throws -> (bytes: Data, isLast: Bool), _ preview: inout Preview
  ) async throws {
    var picture = Picture(
      renditions: renditions, limits: environment.limits, memory: environment.memory, cancellation: cancellation,
      tracing: TraceTarget(tracer: environment.tracer))
    var progress = Progress()
    while true {
      var (rest, isLast) = try await nextBytes()
      try await push(rest, isLast: isLast, to: &preview, progress)
      var isPlanned = false
      repeat {
        let window = rest.prefix(Self.windowByteCount)
        let isLastWindow = isLast && window.count == rest.count
        isPlanned = false
        try cancellation.check()
        let following = isLast ? rest.count - window.count : nil
        let outcome = try picture.push(
          window, isLast: isLastWindow, followingByteCount: following, makeRoom: { giveWay(&preview, after: $0) })
        switch outcome {
        case .needsInput: rest = rest.dropFirst(window.count)
        case .planned(let plan, let consumedByteCount):
          rest = rest.dropFirst(consumedByteCount)
          let isSoonDone = isLast && rest.count <= Self.windowByteCount
          try await start(&picture, plan, isSoonDone: isSoonDone, &preview, &progress)
          isPlanned = true
        case .finished: break
        }
        try await emitResults(of: &picture, &preview, &progress)
        if picture.hasEnded { return }
        // Planned pictures are pushed once more even when no byte is left, which may be all they need.
      } while !rest.isEmpty || isPlanned
    }
  }

  /// What is known of a picture beside its renditions.
  struct Progress {
    let began = ContinuousClock.now
    var queued = Duration.zero
    /// Of the last rendition that was made.
    var report: ProcessingReport?
    /// Of the first that was not.
    var error: (any Error)?
  }

  /// Sets memory aside and tells the caller what is coming.
  /// - `isSoonDone`: whether the next push is the last.
  private func start(
    _ picture: inout Picture, _ plan: PicturePlan, isSoonDone: Bool, _ preview: inout Preview,
    _ progress: inout Progress
  ) async throws {
    guard !plan.plans.isEmpty else { return }
    let asked = ContinuousClock.now
    let reservation = try await queue(Int(clamping: plan.workingSetByteCount), with: &preview)
    progress.queued = asked.duration(to: .now)
    try picture.start(reservation)
    try await start(&preview, progress)
    for (plan, rendition) in zip(plan.renditions, renditions) {
      if case .success(let plan) = plan {
        try await emit(.header(plan.outputInfo), rendition, isMoreReady: isSoonDone, after: &preview)
      }
    }
  }

  /// Gives what is ready of each rendition, and the ends of those that have ended.
  private func emitResults(
    of picture: inout Picture, _ preview: inout Preview, _ progress: inout Progress
  ) async throws {
    for (index, rendition) in renditions.enumerated() {
      var chunks = picture.takeOutput(of: index)[...]
      let outcome = picture.takeEnd(of: index)
      while let chunk = chunks.popFirst() {
        let isMoreReady = !chunks.isEmpty || outcome != nil
        try await emit(.chunk(chunk), rendition, isMoreReady: isMoreReady, after: &preview)
      }
      switch outcome {
      case nil: break
      case .success(var report):
        report.timings.queued = progress.queued
        report.timings.total = progress.began.duration(to: .now)
        progress.report = report
        environment.metrics.made(report)
        note(rendition, nil, picture.hasEnded, progress)
        // Nobody needs a preview of what is there.
        try await end(&preview, with: .cancelled)
        try await emit(.report(report, traceID: environment.currentTraceID), rendition, false)
      case .failure(let error):
        let error = rendition.error(error)
        guard rendition.index != nil else { throw error }
        progress.error = progress.error ?? error
        note(rendition, error, picture.hasEnded, progress)
        try await emit(.failure(error), rendition, false)
      }
    }
  }

  /// Measures a rendition that ends, and the picture when it was the last.
  private func note(_ rendition: Rendition, _ error: (any Error)?, _ isLast: Bool, _ progress: Progress) {
    if rendition.index != nil { environment.metrics.ended(renditionWith: error) }
    guard isLast else { return }
    if let report = progress.report {
      environment.metrics.finished(report)
    } else if let error = progress.error {
      environment.metrics.failed(error, isCancelled: false)
    }
  }

  /// Waits for memory, under a span that tells how long.
  func queue(_ byteCount: Int) async throws(PipelineError) -> Reservation {
    let span = environment.tracer.startSpan("queue", ofKind: .internal)
    defer { span.end() }
    span.attributes["imageworker.reserved_bytes"] = byteCount
    do { return try await admit(byteCount) } catch {
      span.record(error)
      throw error
    }
  }
}

extension Span {
  /// Ends up as an error, with the code that tells what kind.
  func record(_ error: any Error) {
    let code = (error as? PipelineError)?.code.rawValue ?? "OTHER"
    attributes["error.type"] = code
    recordError(error)
    setStatus(SpanStatus(code: .error, message: code))
  }
}
