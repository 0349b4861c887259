internal import FoundationEssentials
internal import ImagePipeline
internal import Tracing
internal import WorkerIsolation

/// The work of one image in a helper process, with the interface of `ImageWork`.
///
/// Every function blocks the calling thread while the helper works. An image has a helper from `prepare` until all of
/// its renditions have ended, it has failed, or this object is released.
final class IsolatedWork {
  private let session: HelperSession
  private let limits: ImageLimits
  private let recordsSpans: Bool
  private var dialogue: HelperDialogue
  private var isBegun = false
  private var supplied = SuppliedBytes()
  /// The maximum number of the image's bytes in one request, for which memory is charged.
  private(set) var windowByteCount = HelperPool.inputByteCount
  /// Whether the image was started by the request that read its header.
  private(set) var isStartedWithHeader = false
  /// The number of bytes that were processed with the start.
  private var begun: Int?
  /// The error of an image whose output is still to be delivered.
  private var failure: PipelineError?
  private(set) var bufferedByteCount = 0
  private(set) var isPaused = false
  private var results = IsolatedResults()

  /// - `caller`: the caller or connection that the image belongs to.
  init(_ pool: HelperPool, caller: String, limits: ImageLimits, cancellation: Cancellation, tracing: Target) {
    session = HelperSession(pool, caller: caller, limits: limits, cancellation: cancellation, tracing: tracing)
    self.limits = limits
    recordsSpans = tracing.isRecorded
    dialogue = HelperDialogue(limits: limits, recordsSpans: tracing.isRecorded)
  }

  deinit { if isBegun { session.abandon() } }

  /// The plan of the image; `nil` until it was planned.
  var plan: PlannedImage? { dialogue.plan }
  /// The results of the image's helper that are in the cache; `nil` before it has a helper.
  var kept: KeptResults? { session.kept }

  // MARK: The helper

  /// Waits for a helper.
  /// - Throws: `overloaded`, `cancelled`.
  func prepare() async throws(PipelineError) {
    if session.process == nil, !isBegun { try await session.begin() }
  }

  /// Takes a helper if one is available.
  /// - Throws: `overloaded`.
  func prepareNow() throws(PipelineError) {
    if session.process == nil, !isBegun { try session.beginNow() }
  }

  /// Whether the image needs its helper no longer.
  var isReleased: Bool { isBegun && session.process == nil }

  /// Returns the CPU time that the helper has used for this image since the last call.
  func takeCPUTime() -> Duration { session.takeCPUTime() }

  /// Sends a request and collects what its responses contain; see `HelperSession.exchange`.
  private func exchange(
    _ request: HelperRequest, returnsErrors: Bool = false
  ) throws(PipelineError) -> HelperResponse {
    dialogue.begin()
    return try session.exchange(
      request, returnsErrors: returnsErrors,
      makeFile: { byteCount in
        dialogue.allowsFile(byteCount: byteCount) ? limits.makeSpillFile(byteCount: byteCount) : -1
      },
      collect: { (response, process) throws(HelperLoss) in
        guard dialogue.accepts(response, to: request, isCancelled: session.isCancelled) else {
          throw process.end(.misbehaved)
        }
        if let plan = response.plan { results = IsolatedResults(plan) }
        try copy(response.segments, of: process)
      })
  }

  /// Copies compressed bytes.
  private func copy(_ segments: [HelperResponse.Segment], of process: HelperProcess) throws(HelperLoss) {
    var offset = 0
    for segment in segments {
      try process.withOutput(offset..<(offset + segment.byteCount)) { results.append($0, to: segment.rendition) }
      offset += segment.byteCount
    }
  }

  // MARK: The interface of ImageWork

  /// Notes that the header is about to be read from `byteCount` bytes, as many of which as possible are one request.
  func expect(byteCount: Int) { windowByteCount = min(max(windowByteCount, byteCount), HelperLayout.inputByteCount) }

  /// See `ImageWork.readHeader`.
  ///
  /// - `planning`: what to do as soon as the header is complete. If the image is started, the first `advance` returns
  ///   what was done.
  func readHeader(
    _ bytes: RawSpan, isLast: Bool, planning: HelperRequest.Planning?
  ) throws(PipelineError) -> Int? {
    var consumed = 0
    repeat {
      let window = bytes.extracting(droppingFirst: consumed).extracting(first: windowByteCount)
      let isAtEnd = consumed + window.byteCount == bytes.byteCount
      supply(window)
      supplied.areLast = isLast && isAtEnd
      let start = isBegun ? nil : HelperRequest.ImageStart(limits: limits, recordsSpans: recordsSpans)
      isBegun = true
      let response = try readHeader(window, start: start, planning: isAtEnd ? planning : nil)
      bufferedByteCount = response.bufferedByteCount
      consumed += consume(response.consumedByteCount)
      if response.consumedByteCount != nil {
        if response.isStarted {
          let hasAdvanced = response.advancedByteCount != nil || response.error != nil
          isStartedWithHeader = true
          if hasAdvanced { begun = try progress(response, consumed: response.advancedByteCount) }
        }
        return consumed
      }
    } while consumed < bytes.byteCount
    return nil
  }

  private func readHeader(
    _ window: RawSpan, start: HelperRequest.ImageStart?, planning: HelperRequest.Planning?
  ) throws(PipelineError) -> HelperResponse {
    if let planning { session.limit(byteCount: planning.admittedByteCount) }
    let response = try exchange(
      .readHeader(byteCount: window.byteCount, isLast: supplied.areLast, start: start, planning: planning),
      returnsErrors: true)
    if let error = response.error, !response.isStarted { throw error }
    return response
  }

  /// Copies the next bytes of the image, at most `windowByteCount`, to the helper.
  private func supply(_ bytes: RawSpan) {
    dialogue.supply(byteCount: bytes.byteCount)
    session.write(bytes)
    supplied.replace(byteCount: bytes.byteCount, isFull: bytes.byteCount == windowByteCount)
  }

  /// Notes how many of the supplied bytes the helper has consumed; `nil` for all.
  /// - Returns: The number.
  private func consume(_ byteCount: Int?) -> Int {
    let count = supplied.consume(byteCount)
    session.consume(count)
    return count
  }

  /// See `ImageWork.plan`.
  func plan(_ configurations: [ProcessingConfiguration], followingByteCount: UInt64?) throws(PipelineError) {
    _ = try exchange(.plan(configurations, followingByteCount: followingByteCount))
  }

  /// See `ImageWork.planPreview`.
  func planPreview(_ configuration: ProcessingConfiguration, maxSide: Int) throws(PipelineError) {
    _ = try exchange(.planPreview(configuration, maxSide: maxSide))
  }

  /// See `ImageWork.start`.
  ///
  /// - `advances`: whether to process the bytes that are there already, for which the first `advance` then returns.
  func start(renditionIDs: [String], advances: Bool) throws(PipelineError) {
    if let plan { session.limit(byteCount: min(plan.reservedByteCount, UInt64(limits.memory))) }
    let count = advances ? supplied.startByteCount : 0
    let response = try exchange(
      .start(
        renditionIDs: renditionIDs, offset: supplied.offset, byteCount: count,
        isLast: supplied.areLast && count == supplied.count),
      returnsErrors: true)
    if let error = response.error, !response.isStarted { throw error }
    if count > 0 { begun = try progress(response, consumed: response.consumedByteCount) }
  }

  /// Notes what `advance` has done.
  /// - Returns: The number of consumed bytes. The next call throws an error that output precedes, so that this output is
  ///   delivered.
  private func progress(_ response: HelperResponse, consumed: Int?) throws(PipelineError) -> Int {
    note(response)
    guard let error = response.error else {
      isPaused = response.isPaused
      return consume(consumed)
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
    let response = try exchange(
      .advance(offset: supplied.offset, byteCount: count, isLast: isLast && count == bytes.byteCount),
      returnsErrors: true)
    return try progress(response, consumed: response.consumedByteCount)
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
    if results.areComplete { session.release() }
  }

  /// See `ImageWork.takeOutput`.
  func takeOutput(of index: Int) -> [Data] { results.takeOutput(of: index) }

  /// See `ImageWork.takeEnd`.
  func takeEnd(of index: Int) -> Result<ProcessingReport, PipelineError>? { results.takeEnd(of: index) }

  /// See `ImageWork.hasEnded`.
  var hasEnded: Bool { plan != nil && results.areTaken }
}
