internal import FoundationEssentials
internal import ImagePipeline
internal import Tracing
internal import WorkerIsolation

/// The work of one image in a helper process, with the interface of `ImageWork`.
///
/// Every function blocks the calling thread while the helper works. An image has a helper from `prepare` until all of
/// its renditions have ended, it has failed, or this object is released.
final class IsolatedWork {
  private let pool: HelperPool
  private let limits: ImageLimits
  private let cancellation: Cancellation
  private let tracing: Target
  private var lease: HelperPool.Lease?
  private var number: UInt32 = 0
  private var handlerID: UInt64?
  private var isBegun = false
  private var input: CrashFile?
  private var supplied = SuppliedBytes()
  /// The maximum number of the image's bytes in one request, for which memory is charged.
  private(set) var windowByteCount = HelperPool.inputByteCount
  /// The number of bytes that were processed with the start.
  private var begun: Int?
  /// The error of an image whose output is still to be delivered.
  private var failure: PipelineError?
  private(set) var bufferedByteCount = 0
  private(set) var plan: PlannedImage?
  private(set) var isPaused = false
  private var results = IsolatedResults()
  private var cpuTime = HelperCPUTime()

  init(_ pool: HelperPool, limits: ImageLimits, cancellation: Cancellation, tracing: Target) {
    self.pool = pool
    self.limits = limits
    self.cancellation = cancellation
    self.tracing = tracing
  }

  deinit {
    // The helper is idle, so it answers at once.
    if lease != nil, isBegun { _ = try? exchange(.abandon) }
    release()
  }

  // MARK: The helper

  /// Waits for a helper.
  /// - Throws: `overloaded`, `cancelled`.
  func prepare() async throws(PipelineError) {
    if lease == nil, !isBegun { begin(try await pool.borrow(cancellation)) }
  }

  /// Takes a helper if one is available.
  /// - Throws: `overloaded`.
  func prepareNow() throws(PipelineError) {
    if lease == nil, !isBegun { begin(try pool.borrowNow()) }
  }

  private func begin(_ lease: HelperPool.Lease) {
    var lease = lease
    lease.imageCount += 1
    self.lease = lease
    let (process, number) = (lease.process, UInt32(lease.imageCount))
    self.number = number
    cpuTime = HelperCPUTime(before: process.cpuTime)
    limit(byteCount: 0)
    handlerID = cancellation.addHandler { process.cancel(work: number) }
  }

  /// Limits the helper to an image that was admitted with `byteCount` bytes.
  private func limit(byteCount: UInt64) {
    let limit = HelperLimit(limits, admitted: byteCount)
    lease?.process.limit(cpuSeconds: limit.cpuSeconds, used: cpuTime.before, byteCount: limit.byteCount)
  }

  /// Whether the image needs its helper no longer.
  var isReleased: Bool { isBegun && lease == nil }

  /// Gives the helper back.
  private func release() {
    if let handlerID { cancellation.removeHandler(handlerID) }
    handlerID = nil
    guard let lease = lease.take() else { return }
    cpuTime.note(lease.process)
    pool.giveBack(lease, isUsable: lease.process.loss == nil)
  }

  /// Returns the CPU time that the helper has used for this image since the last call.
  func takeCPUTime() -> Duration {
    if let process = lease?.process { cpuTime.note(process) }
    return cpuTime.take()
  }

  /// Sends a request and collects what its responses contain.
  ///
  /// The helper is given back after an error.
  /// - `returnsErrors`: whether the response contains an error of the image, instead of a throw.
  private func exchange(
    _ request: HelperRequest, returnsErrors: Bool = false
  ) throws(PipelineError) -> HelperResponse {
    guard let process = lease?.process else {
      throw PipelineError(.internalDefect, "an image without a process was continued")
    }
    do {
      let response = try responses(to: request, of: process)
      for span in response.spans { span.replay(to: tracing.tracer, in: tracing.context, isPreview: tracing.isPreview) }
      if let error = response.error {
        guard returnsErrors else { throw error }
        release()
      }
      return response
    } catch let loss as HelperLoss {
      let error = self.error(of: loss)
      release()
      throw error
    } catch {
      release()
      throw error as? PipelineError ?? PipelineError(.internalDefect, "\(error)")
    }
  }

  private func responses(to request: HelperRequest, of process: HelperProcess) throws -> HelperResponse {
    try process.send(request.bytes(work: number) { pool.encode($0) })
    var outputByteCount = 0
    while true {
      let bytes = try process.receive(work: number) { limits.makeSpillFile() }
      guard let response = HelperResponse(bytes) else { throw process.end(.misbehaved) }
      outputByteCount += try collect(response.segments, of: process)
      guard response.isPartial else { return response }
      guard !response.segments.isEmpty, outputByteCount <= limits.memory else { throw process.end(.misbehaved) }
      try process.send(HelperRequest.proceed.bytes(work: number))
    }
  }

  /// Copies compressed bytes.
  /// - Returns: The number of bytes.
  private func collect(
    _ segments: [HelperResponse.Segment], of process: HelperProcess
  ) throws(HelperLoss) -> Int {
    var offset = 0
    for segment in segments {
      guard results.contain(segment.rendition), segment.byteCount <= HelperLayout.outputByteCount else {
        throw process.end(.misbehaved)
      }
      try process.withOutput(offset..<(offset + segment.byteCount)) { results.append($0, to: segment.rendition) }
      offset += segment.byteCount
    }
    return offset
  }

  /// Returns the error of an image whose helper was lost, and keeps the image's bytes if that was requested.
  private func error(of loss: HelperLoss) -> PipelineError {
    guard !cancellation.isCancelled else { return .cancelled }
    pool.noteLoss()
    input?.keep()
    return PipelineError(loss)
  }

  // MARK: The interface of ImageWork

  /// Notes that the header is about to be read from `byteCount` bytes, as many of which as possible are one request.
  func expect(byteCount: Int) { windowByteCount = min(max(windowByteCount, byteCount), HelperLayout.inputByteCount) }

  /// See `ImageWork.readHeader`.
  ///
  /// - `configurations`: what to plan together with the header, if all bytes are there.
  func readHeader(
    _ bytes: RawSpan, isLast: Bool, planning configurations: [ProcessingConfiguration]
  ) throws(PipelineError) -> Int? {
    if !isBegun { input = pool.crashes?.makeFile() }
    var consumed = 0
    repeat {
      let window = bytes.extracting(droppingFirst: consumed).extracting(first: windowByteCount)
      let isLastWindow = isLast && consumed + window.byteCount == bytes.byteCount
      supply(window)
      supplied.areLast = isLastWindow
      let start = isBegun ? nil : HelperRequest.ImageStart(limits: limits, recordsSpans: tracing.isRecorded)
      isBegun = true
      let response = try exchange(
        .readHeader(
          byteCount: window.byteCount, isLast: isLastWindow, start: start,
          planning: isLastWindow ? configurations : []))
      bufferedByteCount = response.bufferedByteCount
      consumed += consume(response.consumedByteCount)
      if response.consumedByteCount != nil {
        if response.plan != nil { try expect(response, count: configurations.count) }
        return consumed
      }
    } while consumed < bytes.byteCount
    return nil
  }

  /// Copies the next bytes of the image, at most `windowByteCount`, to the helper.
  private func supply(_ bytes: RawSpan) {
    lease?.process.write(bytes)
    input?.write(bytes)
    supplied.replace(byteCount: bytes.byteCount, isFull: bytes.byteCount == windowByteCount)
  }

  /// Notes how many of the supplied bytes the helper has consumed; `nil` for all.
  /// - Returns: The number.
  private func consume(_ byteCount: Int?) -> Int {
    let count = supplied.consume(byteCount)
    input?.consume(count)
    return count
  }

  /// See `ImageWork.plan`.
  func plan(_ configurations: [ProcessingConfiguration], following: FollowingBytes?) throws(PipelineError) {
    try expect(exchange(.plan(configurations, following: following)), count: configurations.count)
  }

  /// See `ImageWork.planPreview`.
  func planPreview(_ configuration: ProcessingConfiguration, maxSide: Int) throws(PipelineError) {
    try expect(exchange(.planPreview(configuration, maxSide: maxSide)), count: 1)
  }

  private func expect(_ response: HelperResponse, count: Int) throws(PipelineError) {
    guard let plan = response.plan, plan.renditions.count == count else {
      if let process = lease?.process { throw error(of: process.end(.misbehaved)) }
      throw PipelineError(.internalDefect, "an image has no plan")
    }
    self.plan = plan
    results = IsolatedResults(plan)
  }

  /// See `ImageWork.start`.
  ///
  /// - `advances`: whether to process the bytes that are there already, for which the first `advance` then returns.
  func start(renditionIDs: [String], advances: Bool) throws(PipelineError) {
    if let plan { limit(byteCount: min(plan.reservedByteCount, UInt64(limits.memory))) }
    let count = advances ? supplied.startByteCount : 0
    let response = try exchange(
      .start(
        renditionIDs: renditionIDs, offset: supplied.offset, byteCount: count,
        isLast: supplied.areLast && count == supplied.count),
      returnsErrors: true)
    if let error = response.error, !response.isStarted { throw error }
    if count > 0 { begun = try progress(response) }
  }

  /// Notes what `advance` has done.
  /// - Returns: The number of consumed bytes. The next call throws an error that output precedes, so that this output is
  ///   delivered.
  private func progress(_ response: HelperResponse) throws(PipelineError) -> Int {
    note(response)
    guard let error = response.error else {
      isPaused = response.isPaused
      return consume(response.consumedByteCount)
    }
    failure = error
    return 0
  }

  /// See `ImageWork.advance`.
  func advance(_ bytes: RawSpan, isLast: Bool) throws(PipelineError) -> Int {
    if let failure { throw failure }
    if let begun = begun.take() { return begun }
    // After the header and after a pause, the next bytes are there already; only whole windows of them if more follow.
    var count = min(supplied.count, bytes.byteCount)
    if count < bytes.byteCount { count -= count % SourceWindows.byteCount }
    if count == 0 {
      supply(bytes.extracting(first: windowByteCount))
      count = supplied.count
    }
    return try progress(
      exchange(
        .advance(offset: supplied.offset, byteCount: count, isLast: isLast && count == bytes.byteCount),
        returnsErrors: true))
  }

  /// See `ImageWork.push`.
  func push(_ bytes: RawSpan, isLast: Bool) throws(PipelineError) -> Bool {
    var offset = 0
    repeat {
      let window = bytes.extracting(droppingFirst: offset).extracting(first: windowByteCount)
      offset += window.byteCount
      supply(window)
      note(try exchange(.push(byteCount: window.byteCount, isLast: isLast && offset == bytes.byteCount)))
      _ = consume(nil)
    } while offset < bytes.byteCount && !results.areComplete
    return results.areComplete
  }

  private func note(_ response: HelperResponse) {
    results.note(response.outcomes)
    if results.areComplete { release() }
  }

  /// See `ImageWork.takeOutput`.
  func takeOutput(of index: Int) -> [Data] { results.takeOutput(of: index) }

  /// See `ImageWork.takeEnd`.
  func takeEnd(of index: Int) -> Result<ProcessingReport, PipelineError>? { results.takeEnd(of: index) }

  /// See `ImageWork.hasEnded`.
  var hasEnded: Bool { plan != nil && results.areTaken }
}
