internal import Admission
internal import ImagePipeline
internal import WorkerIsolation

/// The way to the server of one image in a helper process.
///
/// An image has a helper from `prepare` until all of its renditions have ended, it has failed, or this object is
/// released. The image's bytes are copied to memory that the helper reads; those that it leaves stay there.
final class HelperChannel: WorkChannel {
  private let session: HelperSession
  private let limits: ImageLimits
  private let recordsSpans: Bool
  private let waited: WaitObserver
  private let auxiliary: AuxiliaryImages
  private var dialogue: HelperDialogue
  private var isBegun = false
  /// The bytes in the helper's input that it has not consumed.
  private var supplied = 0..<0
  /// The maximum number of the image's bytes in one request, for which memory is charged.
  private var windowByteCount = HelperPool.inputByteCount
  /// The memory of the helper process.
  private var charge: ProcessCharge?

  /// - `caller`: the caller or connection that the image belongs to.
  /// - `auxiliary`: the images that overlays name.
  /// - `recordsSpans`: whether the tracer records the spans; if not, the helper does not either.
  /// - `waited`: receives the time that the image waits for a helper.
  init(
    _ pool: HelperPool, caller: String, limits: ImageLimits, memory: MemoryBudget, cancellation: Cancellation,
    tracing: TraceTarget, recordsSpans: Bool = true, auxiliary: AuxiliaryImages = AuxiliaryImages(),
    waited: @escaping WaitObserver
  ) {
    self.auxiliary = auxiliary
    session = HelperSession(pool, caller: caller, limits: limits, cancellation: cancellation, tracing: tracing)
    self.limits = limits
    self.waited = waited
    self.recordsSpans = recordsSpans
    dialogue = HelperDialogue(limits: limits, recordsSpans: recordsSpans)
    charge = ProcessCharge(budget: memory)
  }

  deinit { if isBegun { session.abandon() } }

  var maxByteCount: Int { HelperLayout.inputByteCount }
  /// The cached results of the helper; `nil` before the image has one.
  var kept: KeptResults? { session.kept }

  /// Takes a helper, and waits for one if necessary.
  /// - Parameters:
  ///   - isUpload: Whether the image arrives in several messages.
  ///   - mayWait: Whether the image waits if it has to; otherwise it is refused.
  /// - Throws: `overloaded`, `cancelled`.
  func prepare(isUpload: Bool, mayWait: Bool) async throws(PipelineError) {
    guard session.process == nil, !isBegun else { return }
    let asked = ContinuousClock.now
    defer { waited(.helper, asked.duration(to: .now)) }
    try await session.begin(isUpload: isUpload, mayWait: mayWait)
  }

  /// Takes a helper without waiting.
  /// - Throws: `overloaded` if there is none.
  func prepareNow(isUpload: Bool) throws(PipelineError) {
    if session.process == nil, !isBegun { try session.beginNow(isUpload: isUpload) }
  }

  /// Returns the CPU time that the helper has used for this image since the last call.
  func takeCPUTime() -> Duration { session.takeCPUTime() }

  func serve(
    _ request: WorkRequest, _ bytes: RawSpan, isLast: Bool, output: (_ rendition: Int, RawSpan) -> Void
  ) throws(PipelineError) -> WorkResponse {
    if !isBegun, !auxiliary.isEmpty { try supplyAuxiliary() }
    let input = supply(bytes, for: request)
    let message = HelperRequest.Work(
      request: admit(request, followingByteCount: bytes.byteCount - input.count), input: input,
      isLast: isLast && input.count == bytes.byteCount,
      start: isBegun ? nil : HelperRequest.ImageStart(limits: limits, recordsSpans: recordsSpans))
    isBegun = true
    dialogue.begin()
    let response = try session.exchange(
      .work(message),
      makeFile: { byteCount in
        dialogue.allowsFile(byteCount: byteCount) ? limits.makeSpillFile(byteCount: byteCount) : -1
      },
      collect: { (response, process) throws(HelperLoss) in
        guard dialogue.accepts(response, to: message, isCancelled: session.isCancelled) else {
          throw process.end(.misbehaved)
        }
        var offset = 0
        for segment in response.segments {
          try process.withOutput(offset..<(offset + segment.byteCount)) { output(segment.rendition, $0) }
          offset += segment.byteCount
        }
      })
    supplied = supplied.dropFirst(response.work.consumedByteCount)
    session.consume(response.work.consumedByteCount)
    if dialogue.hasEnded {
      session.release()
      charge = nil
    }
    return response.work
  }

  /// Limits the helper to what the request admits.
  /// - Parameters:
  ///   - request: The request.
  ///   - followingByteCount: The number of the lent bytes that are not supplied yet.
  /// - Returns: The request for the supplied bytes.
  private func admit(_ request: WorkRequest, followingByteCount: Int) -> WorkRequest {
    switch request {
    case .readHeader(var planning):
      session.limit(byteCount: planning.admittedByteCount)
      if let count = planning.followingByteCount {
        planning.followingByteCount = count + UInt64(followingByteCount)
      }
      return .readHeader(planning)
    case .start:
      let memory = UInt64(max(limits.memory, limits.frameMemory))
      if let plan = dialogue.plan { session.limit(byteCount: min(plan.reservedByteCount, memory)) }
      return request
    case .advance: return request
    }
  }

  /// Copies the images that overlays name to the helper, which keeps them until its image has ended.
  private func supplyAuxiliary() throws(PipelineError) {
    charge?.grow(to: HelperPool.helperByteCount + auxiliary.byteCount)
    for image in auxiliary.all {
      try image.withBytes { (bytes) throws(PipelineError) in
        var offset = 0
        while offset < bytes.byteCount {
          let part = bytes.extracting(droppingFirst: offset).extracting(first: HelperPool.inputByteCount)
          offset += part.byteCount
          session.writeAuxiliary(part)
          try send(
            HelperRequest.Auxiliary(
              name: image.name, input: 0..<part.byteCount, isLast: offset == bytes.byteCount,
              start: isBegun ? nil : HelperRequest.ImageStart(limits: limits, recordsSpans: recordsSpans)))
        }
      }
    }
  }

  private func send(_ part: HelperRequest.Auxiliary) throws(PipelineError) {
    isBegun = true
    _ = try session.exchange(.auxiliary(part), makeFile: { _ in -1 }) { (response, process) throws(HelperLoss) in
      guard response.isEmpty else { throw process.end(.misbehaved) }
    }
  }

  /// Makes the next bytes of the image available to the helper, unless some of them already are.
  /// - Returns: Where they are in its input; whole windows of them if more follow.
  private func supply(_ bytes: RawSpan, for request: WorkRequest) -> Range<Int> {
    guard !bytes.isEmpty else { return 0..<0 }
    let count = min(supplied.count, bytes.byteCount)
    let whole = count < bytes.byteCount ? count - count % ImageServer.windowByteCount : count
    if whole > 0 { return supplied.prefix(whole) }
    if case .readHeader(let planning) = request {
      dialogue.mayHaveFrames = planning.results.mayHaveFrames
      windowByteCount = min(max(windowByteCount, bytes.byteCount), HelperLayout.inputByteCount)
      charge?.grow(
        to: HelperPool.helperByteCount + windowByteCount - HelperPool.inputByteCount + auxiliary.byteCount)
    }
    let window = bytes.extracting(first: windowByteCount)
    dialogue.supply(byteCount: window.byteCount)
    session.write(window, maxFileByteCount: dialogue.maxFileByteCount)
    supplied = 0..<window.byteCount
    return supplied
  }
}
