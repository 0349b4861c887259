internal import FoundationEssentials
internal import ImagePipeline
internal import ResultCache
internal import Tracing

extension ImageJob {
  /// Whether results have still to be made.
  enum Lookup { case missing, delivered }

  /// The renditions that are made.
  private var madeRenditions: [Rendition] { cache?.missing ?? renditions }

  /// What was decided for the image; legal once its header was read.
  var plan: ImagePlan { work.plan! }

  // MARK: Look up

  /// Delivers the results of an image that are in the cache, where all of its bytes came in the first chunk.
  func lookUp() async throws -> Lookup {
    guard let cache, input.isLastChunk else { return .missing }
    let kept = try await cache.lookUp()
    try await deliver(kept, queued: renditions[0].index == nil ? clock.began.duration(to: .now) : .zero)
    // The report counts the wait for a thread, and from here on.
    clock.began = ContinuousClock.now - clock.queued
    return cache.missing.isEmpty ? .delivered : .missing
  }

  /// Delivers the results of an upload that was read up to its end while it waited for memory.
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

  /// Takes bytes until the header is complete, and plans the results.
  func readHeader() async throws {
    try await preview?.push(input.chunk, isLast: input.isLastChunk)
    while try !readHeaderWindow() { try await refill() }
    let following = input.chunk
    try work.plan(madeRenditions.map(\.configuration), following: input.isLastChunk ? following.bytes : nil)
  }

  /// - Returns: whether the header is complete.
  private func readHeaderWindow() throws -> Bool {
    try cancellation.check()
    let (bytes, isLast) = input.current
    let headerByteCount = try work.readHeader(bytes.bytes, isLast: isLast)
    do throws(PipelineError) { try work.chargeBuffered() } catch {
      guard let preview, preview.makeRoom(after: error) else { throw error }
      try work.chargeBuffered()
    }
    input.consume(headerByteCount ?? bytes.count)
    return headerByteCount != nil
  }

  /// Waits for the next chunk where the current one is used up and more is needed.
  func refill() async throws {
    guard input.isEmpty, !work.isPaused, !work.hasEnded else { return }
    try await input.fetch()
    try await preview?.push(input.chunk, isLast: input.isLastChunk)
  }

  // MARK: Admit

  /// Reserves memory for the image and its preview together, since two waits could each wait for the other.
  ///
  /// Where there is no room for both, for the image alone.
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

  /// Waits for memory, under a span that shows how long.
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

  /// Begins decoding, and delivers the headers of what is coming.
  func start(_ reservation: consuming Reservation) async throws {
    let renditions = madeRenditions
    try work.start(reservation, renditionIDs: renditions.contains { $0.index != nil } ? renditions.map(\.id) : [])
    try await preview?.start(clock)
    for (plan, rendition) in zip(plan.renditions, renditions) {
      guard case .success(let plan) = plan else { continue }
      try await madeResults.send(ResultPart(.header(plan.outputInfo), of: rendition, isMoreReady: input.isNearEnd))
    }
  }

  /// Works on the next window, until enough output waits.
  func decode() throws {
    try cancellation.check()
    let (bytes, isLast) = input.current
    input.consume(try work.advance(bytes.bytes, isLast: isLast))
  }

  // MARK: Deliver and report

  /// Delivers what is ready of each rendition, and the ends of those that have ended.
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
        // The error of the only result is the image's.
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
  /// Marks the span as failed, with the code of the error's kind.
  func record(_ error: any Error) {
    let code = (error as? PipelineError)?.code.rawValue ?? "OTHER"
    attributes["error.type"] = code
    recordError(error)
    setStatus(SpanStatus(code: .error, message: code))
  }
}
