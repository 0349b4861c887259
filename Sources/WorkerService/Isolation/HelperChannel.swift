internal import Admission
internal import ImagePipeline
internal import Tracing
internal import WorkerIsolation

/// The way to the server of one image in a helper process.
///
/// An image has a helper from `prepare` until all of its renditions have ended, it has failed, or this object is
/// released. The image's bytes are copied to memory that the helper reads; those that it leaves stay there. It belongs to
/// one thread at a time, which blocks while the helper works.
final class HelperChannel: WorkChannel {
  private let pool: HelperPool
  private let caller: String
  private let limits: ImageLimits
  private let cancellation: Cancellation
  private let tracing: TraceTarget
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
  /// The helper; `nil` before it is borrowed and after it was given back.
  private var lease: HelperPool.Lease?
  /// The number of the image among those of the helper.
  private var number: UInt32 = 0
  private var handlerID: UInt64?
  private var cpuTime = HelperCPUTime()
  /// The cached results of the helper; `nil` before the image has one.
  private(set) var kept: KeptResults?
  /// The file for the image's bytes, if they are kept after a crash.
  private var crashFile: CrashFile?

  /// - `caller`: the caller or connection that the image belongs to.
  /// - `auxiliary`: the images that overlays name.
  /// - `recordsSpans`: whether the tracer records the spans; if not, the helper does not either.
  /// - `waited`: receives the time that the image waits for a helper.
  init(
    _ pool: HelperPool, caller: String, limits: ImageLimits, memory: MemoryBudget, cancellation: Cancellation,
    tracing: TraceTarget, recordsSpans: Bool = true, auxiliary: AuxiliaryImages = AuxiliaryImages(),
    waited: @escaping WaitObserver
  ) {
    self.pool = pool
    self.caller = caller
    self.limits = limits
    self.cancellation = cancellation
    self.tracing = tracing
    self.recordsSpans = recordsSpans
    self.waited = waited
    self.auxiliary = auxiliary
    dialogue = HelperDialogue(limits: limits, recordsSpans: recordsSpans)
    charge = ProcessCharge(budget: memory)
  }

  deinit {
    if isBegun { abandon() }
    release()
  }

  var maxByteCount: Int { HelperLayout.inputByteCount }

  // MARK: Borrow and give back

  /// Takes a helper, and waits for one if necessary.
  /// - Parameters:
  ///   - isUpload: Whether the image arrives in several messages.
  ///   - mayWait: Whether the image waits if it has to; otherwise it is refused.
  /// - Throws: `overloaded`, `cancelled`.
  func prepare(isUpload: Bool, mayWait: Bool) async throws(PipelineError) {
    guard lease == nil, !isBegun else { return }
    let asked = ContinuousClock.now
    defer { waited(.helper, asked.duration(to: .now)) }
    guard mayWait else { return begin(try pool.borrowNow(for: caller, isUpload: isUpload)) }
    begin(try await pool.borrow(for: caller, isUpload: isUpload, cancellation))
  }

  /// Takes a helper without waiting.
  /// - Throws: `overloaded` if there is none.
  func prepareNow(isUpload: Bool) throws(PipelineError) {
    if lease == nil, !isBegun { begin(try pool.borrowNow(for: caller, isUpload: isUpload)) }
  }

  private func begin(_ lease: HelperPool.Lease) {
    var lease = lease
    lease.imageCount += 1
    self.lease = lease
    kept = lease.kept
    let (process, number) = (lease.process, UInt32(lease.imageCount))
    self.number = number
    cpuTime = HelperCPUTime(before: process.cpuTime)
    process.begin(work: number, timeouts: pool.timeouts, used: cpuTime.before)
    process.limitFiles(byteCount: 0)
    limit(byteCount: 0)
    handlerID = cancellation.addHandler { process.cancel(work: number) }
    crashFile = pool.crashes?.makeFile()
  }

  /// Limits the helper to an image that was admitted with `byteCount` bytes.
  private func limit(byteCount: UInt64) {
    let limit = HelperLimit(limits, admitted: byteCount)
    lease?.process.limit(cpuSeconds: limit.cpuSeconds, used: cpuTime.before, byteCount: limit.byteCount)
  }

  /// Gives the helper back, unless it has received files, of which it may keep parts.
  private func release() {
    if let handlerID { cancellation.removeHandler(handlerID) }
    handlerID = nil
    guard let lease = lease.take() else { return }
    cpuTime.note(lease.process)
    if lease.process.loss != nil { lease.kept.revoke() }
    pool.giveBack(lease, isUsable: lease.process.loss == nil && !lease.process.hasFiles)
  }

  /// Returns the CPU time that the helper has used for this image since the last call.
  func takeCPUTime() -> Duration {
    if let process = lease?.process { cpuTime.note(process) }
    return cpuTime.take()
  }

  // MARK: Requests

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
    let response = try exchange(
      .work(message),
      makeFile: { byteCount in
        dialogue.allowsFile(byteCount: byteCount) ? limits.makeSpillFile(byteCount: byteCount) : -1
      },
      collect: { (response, process) throws(HelperLoss) in
        guard dialogue.accepts(response, to: message, isCancelled: cancellation.isCancelled) else {
          throw process.end(.misbehaved)
        }
        var offset = 0
        for segment in response.segments {
          try process.withOutput(offset..<(offset + segment.byteCount)) { output(segment.rendition, $0) }
          offset += segment.byteCount
        }
      })
    supplied = supplied.dropFirst(response.work.consumedByteCount)
    crashFile?.consume(response.work.consumedByteCount)
    if dialogue.hasEnded {
      release()
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
      limit(byteCount: planning.admittedByteCount)
      if let count = planning.followingByteCount {
        planning.followingByteCount = count + UInt64(followingByteCount)
      }
      return .readHeader(planning)
    case .start:
      let memory = UInt64(max(limits.memory, limits.frameMemory))
      if let plan = dialogue.plan { limit(byteCount: min(plan.reservedByteCount, memory)) }
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
          lease?.process.write(part)
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
    _ = try exchange(.auxiliary(part), makeFile: { _ in -1 }) { (response, process) throws(HelperLoss) in
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
    lease?.process.limitFiles(byteCount: dialogue.maxFileByteCount)
    lease?.process.write(window)
    crashFile?.write(window)
    supplied = 0..<window.byteCount
    return supplied
  }

  /// Sends a request and receives its responses.
  ///
  /// The helper is given back after an error.
  /// - Parameters:
  ///   - request: The request.
  ///   - makeFile: Returns the descriptor of a new temporary file of a size in bytes, or -1.
  ///   - collect: Called with each response, to check it and to copy its output.
  /// - Returns: The responses together.
  /// - Throws: The image's error, or that of a helper that was lost.
  private func exchange(
    _ request: HelperRequest, makeFile: (UInt64) -> Int32,
    collect: (HelperResponse, HelperProcess) throws(HelperLoss) -> Void
  ) throws(PipelineError) -> HelperResponse {
    guard let process = lease?.process else {
      throw PipelineError(.internalDefect, "an image without a process was continued")
    }
    let message = request.bytes(work: number) { pool.encode($0) }
    guard message.count <= HelperLayout.messageByteCount else { throw PipelineError(messageByteCount: message.count) }
    let response: HelperResponse
    do throws(HelperLoss) {
      response = try responses(to: message, of: process, makeFile, collect)
    } catch {
      defer { release() }
      guard !cancellation.isCancelled else { throw PipelineError.cancelled }
      pool.noteLoss()
      crashFile?.keep()
      throw PipelineError(error)
    }
    for span in response.spans { span.replay(to: tracing.tracer, in: tracing.context, isPreview: tracing.isPreview) }
    if let error = response.error {
      release()
      throw error
    }
    return response
  }

  private func responses(
    to message: [UInt8], of process: HelperProcess, _ makeFile: (UInt64) -> Int32,
    _ collect: (HelperResponse, HelperProcess) throws(HelperLoss) -> Void
  ) throws(HelperLoss) -> HelperResponse {
    try process.send(message)
    var all = HelperResponse()
    while true {
      guard let response = HelperResponse(try process.receive(makeFile: makeFile)) else {
        throw process.end(.misbehaved)
      }
      try collect(response, process)
      all.append(response)
      guard response.isPartial else { return all }
      try process.send(HelperRequest.proceed.bytes(work: number))
    }
  }

  /// Abandons the image.
  ///
  /// A helper that does not answer soon is ended.
  private func abandon() {
    guard let process = lease?.process else { return }
    process.cancel(work: number)
    _ = try? exchange(.abandon, makeFile: { _ in -1 }) { (response, process) throws(HelperLoss) in
      guard !response.isPartial, response.segments.isEmpty else { throw process.end(.misbehaved) }
    }
  }
}
