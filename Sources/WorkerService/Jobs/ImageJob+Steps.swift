internal import Admission
internal import FoundationEssentials
internal import ImagePipeline
internal import ResultCache
internal import Tracing

extension ImageJob {
  /// The outcome of a cache lookup: some results are missing, or all were delivered.
  enum Lookup { case missing, delivered }

  /// The renditions that this job produces: those that are not in the cache.
  private var madeRenditions: [Rendition] { cache?.missing ?? renditions }

  /// The names of the renditions in traces; empty for a single result.
  private var renditionIDs: [String] {
    madeRenditions.contains { $0.index != nil } ? madeRenditions.map(\.id) : []
  }

  // MARK: Look up

  /// Delivers the cached results of an image whose first chunk contains all of its bytes.
  func lookUp() async throws -> Lookup {
    guard let cache, input.isLastChunk else { return .missing }
    let kept = try await cache.lookUp()
    try await deliver(kept, queued: renditions[0].index == nil ? clock.began.duration(to: .now) : .zero)
    // The reported total consists of the wait for a thread and the time from here on.
    clock.began = ContinuousClock.now - clock.queued
    return cache.missing.isEmpty ? .delivered : .missing
  }

  /// Delivers the cached results of an upload that was read to its end while it waited for memory.
  func lookUpUpload() async throws -> Lookup {
    guard let cache, !cache.hasLookedUp else { return .missing }
    try await deliver(cache.lookUpUpload(), queued: .zero)
    return cache.missing.isEmpty ? .delivered : .missing
  }

  private func deliver(_ kept: [JobCache.Kept], queued: Duration) async throws {
    for kept in kept {
      let (rendition, result) = (kept.rendition, kept.result)
      guard var processing = ProcessingReport(wireBytes: result.metadata) else { throw ImplausibleReport() }
      try await results.send(ResultPart(.header(processing.output), of: rendition, isMoreReady: true))
      for chunk in result.chunks {
        try cancellation.check()
        try await results.send(ResultPart(.chunk(Data(chunk)), of: rendition, isMoreReady: true))
      }
      processing = JobClock(began: clock.began, queued: queued).timed(processing)
      let report = ResultReport(processing: processing, isCacheHit: true, traceID: environment.currentTraceID)
      try await results.send(ResultPart(.report(report), of: rendition))
    }
  }

  // MARK: Read the header

  /// Reads input until the header is complete and the results are planned.
  func readHeader() async throws -> PlannedImage {
    let mayWait = admission.mayWaitForProcess()  // notes the image, also without a helper
    try await work.helper?.prepare(isUpload: input.source.whole == nil, mayWait: mayWait)
    while true {
      try readHeaderWindow()
      if let plan = work.plan { return plan }
      try await refill()
    }
  }

  /// Reads the next window of the header, and starts the image with it if there is plenty of memory.
  private func readHeaderWindow() throws {
    try cancellation.check()
    let (bytes, isLast) = input.current
    let following = input.isLastChunk ? UInt64(input.chunk.count - bytes.count) : nil
    var spare: Reservation? = nil
    // The results of an upload are looked up before it is started.
    if input.isLastChunk, cache?.hasLookedUp ?? true {
      spare = admission.reserveSpare(ImageWork.spareByteCount + keptByteCount)
    }
    let results = WorkRequest.Planning.Results.renditions(madeRenditions.map(\.configuration))
    let planning = WorkRequest.Planning(
      results: results, followingByteCount: following, lateOrientation: worked { lateOrientation },
      countedFrames: results.countsFromEnd ? worked { countedFrames } : nil,
      admittedByteCount: spare == nil ? 0 : UInt64(ImageWork.spareByteCount), renditionIDs: renditionIDs)
    let consumed = try worked { () throws(PipelineError) in
      try work.readHeader(bytes.bytes, isLast: isLast, planning, spare: spare.take())
    }
    if work.isStarted { noteReservation() }
    do throws(PipelineError) { try work.chargeBuffered() } catch {
      guard input.source.makeRoom(after: error) else { throw error }
      try work.chargeBuffered()
    }
    input.consume(consumed)
  }

  /// Records the memory of an image that did not wait for it.
  private func noteReservation() {
    let span = environment.tracer.startSpan("queue", ofKind: .internal)
    span.attributes["imageworker.reserved_bytes"] = work.plan.map { Int(clamping: $0.reservedByteCount) }
    span.end()
  }

  /// Waits for the next chunk if the current one is consumed and more input is needed.
  func refill() async throws {
    guard input.chunk.isEmpty, !work.isPaused, !work.hasEnded else { return }
    try await input.fetch()
  }

  // MARK: Admit

  /// Waits for the memory of the image inside a `queue` span that records the wait.
  func admit(_ plan: PlannedImage) async throws(PipelineError) -> Reservation {
    let asked = ContinuousClock.now
    defer { clock.queued += asked.duration(to: .now) }
    let byteCount = Int(clamping: plan.reservedByteCount)
    let span = environment.tracer.startSpan("queue", ofKind: .internal)
    defer { span.end() }
    span.attributes["imageworker.reserved_bytes"] = byteCount
    do { return try await admission.reserve(byteCount + keptByteCount, cancellation: cancellation) } catch {
      span.record(error)
      throw error
    }
  }

  // MARK: Decode

  /// Starts decoding.
  func start(_ reservation: consuming Reservation) throws {
    var reservation: Reservation? = consume reservation
    try worked { () throws(PipelineError) in try work.start(reservation.take(), renditionIDs: renditionIDs) }
  }

  /// Processes the next window, or a part of it if enough output is buffered.
  func decode() throws {
    try cancellation.check()
    let (bytes, isLast) = input.current
    let consumed = try worked { () throws(PipelineError) in try work.advance(bytes.bytes, isLast: isLast) }
    input.consume(consumed)
  }

  // MARK: Deliver and report

  /// Delivers the headers of the planned results, except those whose format is not known yet.
  func sendHeaders(_ plan: PlannedImage) async throws {
    for (index, (plan, rendition)) in zip(plan.renditions, madeRenditions).enumerated() {
      guard case .success(let plan) = plan else { continue }
      if plan.output.format.isEmpty {
        waitingHeaders[index] = plan.output
        continue
      }
      try await madeResults.send(ResultPart(.header(plan.output), of: rendition, isMoreReady: input.isNearEnd))
    }
  }

  /// Delivers the available output of each rendition, and the report or error of each that has ended.
  func deliver() async throws {
    for (index, rendition) in madeRenditions.enumerated() {
      var chunks = work.results.takeOutput(of: index)[...]
      let outcome = work.results.takeEnd(of: index)
      if let first = chunks.first, var header = waitingHeaders.removeValue(forKey: index) {
        header.noteFormat(of: first.bytes)
        try await madeResults.send(ResultPart(.header(header), of: rendition, isMoreReady: true))
      }
      while let chunk = chunks.popFirst() {
        let isMoreReady = !chunks.isEmpty || outcome != nil
        try await madeResults.send(ResultPart(.chunk(chunk), of: rendition, isMoreReady: isMoreReady))
      }
      switch outcome {
      case nil: break
      case .success(let report):
        let report = ResultReport(processing: clock.timed(report), traceID: environment.currentTraceID)
        try await madeResults.send(ResultPart(.report(report), of: rendition))
      case .failure(let error):
        // The error of a single unnamed result is the error of the image.
        guard rendition.index != nil else { throw error }
        try await madeResults.send(ResultPart(.failure(rendition.error(error)), of: rendition))
      }
    }
  }
}

extension Span {
  /// Marks the span as failed, with the error's code as its status.
  func record(_ error: any Error) {
    let code = (error as? PipelineError)?.code.rawValue ?? "OTHER"
    attributes["error.type"] = code
    recordError(error)
    setStatus(SpanStatus(code: .error, message: code))
  }
}
