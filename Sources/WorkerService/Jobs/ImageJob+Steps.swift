internal import FoundationEssentials
internal import ImagePipeline
internal import ResultCache
internal import Tracing

extension ImageJob {
  /// The outcome of a cache lookup: some results are missing, or all were delivered.
  enum Lookup { case missing, delivered }

  /// The renditions that this job produces: those that are not in the cache.
  private var madeRenditions: [Rendition] { cache?.missing ?? renditions }

  /// The plan of the image.
  ///
  /// Available once the header was read.
  var plan: PlannedImage { work.plan! }

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
      var processing = try ProcessingReport(cacheMetadata: result.metadata)
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

  /// Reads input until the header is complete, then plans the results.
  func readHeader() async throws {
    try await work.prepare()
    try await preview?.push(input.chunk, isLast: input.isLastChunk)
    while try !readHeaderWindow() { try await refill() }
    let following = input.chunk
    try charged {
      try work.plan(madeRenditions.map(\.configuration), following: input.isLastChunk ? following.bytes : nil)
    }
  }

  /// Reads the next window of the header.
  /// - Returns: Whether the header is complete.
  private func readHeaderWindow() throws -> Bool {
    try cancellation.check()
    let (bytes, isLast) = input.current
    let headerByteCount = try charged {
      try work.readHeader(bytes.bytes, isLast: isLast) { madeRenditions.map(\.configuration) }
    }
    do throws(PipelineError) { try work.chargeBuffered() } catch {
      guard let preview, preview.makeRoom(after: error) else { throw error }
      try work.chargeBuffered()
    }
    input.consume(headerByteCount ?? bytes.count)
    return headerByteCount != nil
  }

  /// Waits for the next chunk if the current one is consumed and more input is needed.
  func refill() async throws {
    guard input.isEmpty, !work.isPaused, !work.hasEnded else { return }
    try await input.fetch()
    try await preview?.push(input.chunk, isLast: input.isLastChunk)
  }

  // MARK: Admit

  /// Reserves memory for the image and its preview together.
  ///
  /// Two separate waits could deadlock with those of another job. If there is no room for both, the preview ends and
  /// memory is reserved for the image alone.
  func admit() async throws -> Reservation {
    let asked = ContinuousClock.now
    defer { clock.queued += asked.duration(to: .now) }
    let byteCount = Int(clamping: plan.reservedByteCount)
    if let preview, let previewByteCount = preview.plannedByteCount {
      do throws(PipelineError) { return try await queue(byteCount + previewByteCount) } catch {
        guard error.code != .cancelled else { throw error }
        try await preview.end(with: error)
      }
    }
    return try await queue(byteCount)
  }

  /// Waits for memory inside a `queue` span that records the wait.
  private func queue(_ byteCount: Int) async throws(PipelineError) -> Reservation {
    let span = environment.tracer.startSpan("queue", ofKind: .internal)
    defer { span.end() }
    span.attributes["imageworker.reserved_bytes"] = byteCount
    do { return try await admission.reserve(byteCount + source.bufferedByteCount) } catch {
      span.record(error)
      throw error
    }
  }

  // MARK: Decode

  /// Starts decoding and delivers the headers of the planned results.
  func start(_ reservation: consuming Reservation) async throws {
    let renditions = madeRenditions
    let ids = renditions.contains { $0.index != nil } ? renditions.map(\.id) : []
    let began = ContinuousClock.now
    try work.start(reservation, renditionIDs: ids, advances: true)
    clock.worked += began.duration(to: .now)
    try await preview?.start(clock)
    for (plan, rendition) in zip(plan.renditions, renditions) {
      guard case .success(let plan) = plan else { continue }
      try await madeResults.send(ResultPart(.header(plan.output), of: rendition, isMoreReady: input.isNearEnd))
    }
  }

  /// Processes the next window, or a part of it if enough output is buffered.
  func decode() throws {
    try cancellation.check()
    let (bytes, isLast) = input.current
    let began = ContinuousClock.now
    input.consume(try charged { try work.advance(bytes.bytes, isLast: isLast) })
    clock.worked += began.duration(to: .now)
  }

  // MARK: Deliver and report

  /// Delivers the available output of each rendition, and the report or error of each that has ended.
  func deliver() async throws {
    for (index, rendition) in madeRenditions.enumerated() {
      var chunks = work.takeOutput(of: index)[...]
      let outcome = work.takeEnd(of: index)
      while let chunk = chunks.popFirst() {
        let isMoreReady = !chunks.isEmpty || outcome != nil
        try await madeResults.send(ResultPart(.chunk(chunk), of: rendition, isMoreReady: isMoreReady))
      }
      switch outcome {
      case nil: break
      case .success(let report): try await self.report(report, of: rendition)
      case .failure(let error):
        // The error of a single unnamed result is the error of the image.
        guard rendition.index != nil else { throw error }
        try await madeResults.send(ResultPart(.failure(rendition.error(error)), of: rendition))
      }
    }
  }

  private func report(_ report: ProcessingReport, of rendition: Rendition) async throws {
    let report = ResultReport(processing: clock.timed(report), traceID: environment.currentTraceID)
    try await madeResults.send(ResultPart(.report(report), of: rendition))
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
