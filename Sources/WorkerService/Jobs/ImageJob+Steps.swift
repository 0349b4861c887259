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
    while try !readHeaderWindow() { try await refill() }
    let followingByteCount = input.isLastChunk ? UInt64(input.chunk.bytes.byteCount) : nil
    try charged { try work.plan(madeRenditions.map(\.configuration), followingByteCount: followingByteCount) }
  }

  /// Reads the next window of the header.
  /// - Returns: Whether the header is complete.
  private func readHeaderWindow() throws -> Bool {
    try cancellation.check()
    let (bytes, isLast) = input.current
    let began = ContinuousClock.now
    let headerByteCount = try charged { try readHeader(bytes, isLast: isLast) }
    if work.isStartedWithHeader {
      clock.worked += began.duration(to: .now)
      noteReservation()
    }
    do throws(PipelineError) { try work.chargeBuffered() } catch {
      guard source.makeRoom(after: error) else { throw error }
      try work.chargeBuffered()
    }
    input.consume(headerByteCount ?? bytes.count)
    return headerByteCount != nil
  }

  private func readHeader(_ bytes: Data, isLast: Bool) throws(PipelineError) -> Int? {
    guard input.isLastChunk else { return try work.readHeader(bytes.bytes, isLast: isLast) }
    let beyond = input.chunk.dropFirst(bytes.count)
    return try work.readHeader(
      bytes.bytes, beyond: beyond.bytes, planning: { madeRenditions.map(\.configuration) },
      renditionIDs: { renditionIDs }, reserve: reserveSpare)
  }

  /// Returns memory in which the image may be started before it is planned.
  ///
  /// The results of an upload are looked up before it is started.
  private func reserveSpare(_ byteCount: Int) -> Reservation? {
    guard cache?.hasLookedUp ?? true else { return nil }
    return admission.reserveSpare(byteCount + source.bufferedByteCount)
  }

  /// Records the memory of an image that did not wait for it.
  private func noteReservation() {
    let span = environment.tracer.startSpan("queue", ofKind: .internal)
    span.attributes["imageworker.reserved_bytes"] = Int(clamping: plan.reservedByteCount)
    span.end()
  }

  /// Waits for the next chunk if the current one is consumed and more input is needed.
  func refill() async throws {
    guard input.isEmpty, !work.isPaused, !work.hasEnded else { return }
    try await input.fetch()
  }

  // MARK: Admit

  /// Waits for the memory of the image inside a `queue` span that records the wait.
  func admit() async throws(PipelineError) -> Reservation {
    let asked = ContinuousClock.now
    defer { clock.queued += asked.duration(to: .now) }
    let byteCount = Int(clamping: plan.reservedByteCount)
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
    let began = ContinuousClock.now
    try work.start(reservation, renditionIDs: renditionIDs, advances: true)
    clock.worked += began.duration(to: .now)
    try await sendHeaders()
  }

  /// Delivers the headers of the planned results of a started image.
  func sendHeaders() async throws {
    for (plan, rendition) in zip(plan.renditions, madeRenditions) {
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
