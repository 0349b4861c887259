internal import FoundationEssentials
internal import ImagePipeline
internal import Tracing
internal import WorkerProtocol

/// Takes one picture from its upload to its report: header, admission, decoding as bytes arrive, chunks out.
struct PictureProcessor: Sendable {
  /// What a picture's result is made of, in this order: one header, chunks, one report.
  enum Part: Sendable {
    case header(ImageInfo)
    case chunk(Data)
    case report(ProcessingReport, traceID: String?)
    /// The header of a result that was kept.
    case cachedHeader(Imageworker_V1_ImageInfo)
    /// The report of a result that was kept.
    case cachedReport(Imageworker_V1_ProcessingReport)

    /// Whether no part follows.
    var isLast: Bool {
      switch self {
      case .report, .cachedReport: true
      case .header, .cachedHeader, .chunk: false
      }
    }
  }

  let environment: WorkerEnvironment
  let configuration: ProcessingConfiguration
  let cancellation: Cancellation
  /// Sets memory aside for a plan, or refuses.
  let admit: @Sendable (Int) async throws(PipelineError) -> Reservation
  let emit: @Sendable (Part) async throws -> Void

  /// The bytes that are worked on between two looks at the output: a strip of a large picture needs about as many.
  private static let windowByteCount = 128 * 1024

  /// Works on the picture executor until the result is complete.
  /// - Parameter nextBytes: the next bytes of the picture, and whether none follow.
  /// - Throws: `PipelineError`, or what `nextBytes` and `emit` throw.
  func run(nextBytes: () async throws -> (bytes: Data, isLast: Bool)) async throws {
    // The whole loop runs there, as each change of threads costs more than what is done between two windows.
    try await withTaskExecutorPreference(environment.executor) { try await work(nextBytes: nextBytes) }
  }

  private func work(nextBytes: () async throws -> (bytes: Data, isLast: Bool)) async throws {
    let began = ContinuousClock.now
    var picture = Picture(
      configuration: configuration, limits: environment.limits, memory: environment.memory, cancellation: cancellation,
      tracing: TraceTarget(tracer: environment.tracer))
    var queued = Duration.zero
    while true {
      var (rest, isLast) = try await nextBytes()
      var isPlanned = false
      repeat {
        let window = rest.prefix(Self.windowByteCount)
        let isLastWindow = isLast && window.count == rest.count
        isPlanned = false
        let following = isLast ? rest.count - window.count : nil
        switch try picture.push(window, isLast: isLastWindow, followingByteCount: following) {
        case .needsInput: rest = rest.dropFirst(window.count)
        case .planned(let plan, let consumedByteCount):
          queued += try await start(&picture, plan)
          rest = rest.dropFirst(consumedByteCount)
          isPlanned = true
        case .finished:
          for chunk in picture.takeOutput() { try await emit(.chunk(chunk)) }
          let report = picture.report(queued: queued, total: began.duration(to: .now))
          environment.metrics.finished(report)
          return try await emit(.report(report, traceID: environment.currentTraceID))
        }
        for chunk in picture.takeOutput() { try await emit(.chunk(chunk)) }
        // Planned pictures are pushed once more even when no byte is left, which may be all they need.
      } while !rest.isEmpty || isPlanned
    }
  }

  /// Sets memory aside and tells the caller what is coming.
  /// - Returns: how long the picture waited.
  private func start(_ picture: inout Picture, _ plan: Plan) async throws -> Duration {
    let byteCount = Int(clamping: plan.workingSetByteCount)
    let asked = ContinuousClock.now
    let reservation = try await queue(byteCount)
    let queued = asked.duration(to: .now)
    try picture.start(reservation)
    try await emit(.header(plan.outputInfo))
    return queued
  }

  /// Waits for memory, under a span that tells how long.
  private func queue(_ byteCount: Int) async throws(PipelineError) -> Reservation {
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
