internal import ImagePipeline
internal import LibC
internal import Tracing
internal import WorkerIsolation

/// The use of a helper for one image, from the time it is borrowed until it is given back.
///
/// It belongs to one thread at a time, which blocks while the helper works.
final class HelperSession {
  private let pool: HelperPool
  private let caller: String
  private let limits: ImageLimits
  private let cancellation: Cancellation
  private let tracing: TraceTarget
  private var lease: HelperPool.Lease?
  private var number: UInt32 = 0
  private var handlerID: UInt64?
  private var cpuTime = HelperCPUTime()
  /// The results of the helper that are in the cache; `nil` before it is borrowed.
  private(set) var kept: KeptResults?
  /// The file for the image's bytes, if they are kept after a crash.
  private var input: CrashFile?

  init(
    _ pool: HelperPool, caller: String, limits: ImageLimits, cancellation: Cancellation, tracing: TraceTarget
  ) {
    self.pool = pool
    self.caller = caller
    self.limits = limits
    self.cancellation = cancellation
    self.tracing = tracing
  }

  deinit { release() }

  /// The helper; `nil` before it is borrowed and after it was given back.
  var process: HelperProcess? { lease?.process }

  // MARK: Borrow and give back

  /// Takes a helper, and waits for one if it may.
  /// - Throws: `overloaded`, `cancelled`.
  func begin(isUpload: Bool, mayWait: Bool) async throws(PipelineError) {
    guard mayWait else { return try beginNow(isUpload: isUpload) }
    begin(try await pool.borrow(for: caller, isUpload: isUpload, cancellation))
  }

  /// Takes a helper if one is available.
  /// - Throws: `overloaded`.
  func beginNow(isUpload: Bool) throws(PipelineError) {
    begin(try pool.borrowNow(for: caller, isUpload: isUpload))
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
    input = pool.crashes?.makeFile()
  }

  /// Limits the helper to an image that was admitted with `byteCount` bytes.
  func limit(byteCount: UInt64) {
    let limit = HelperLimit(limits, admitted: byteCount)
    lease?.process.limit(cpuSeconds: limit.cpuSeconds, used: cpuTime.before, byteCount: limit.byteCount)
  }

  /// Gives the helper back, unless it has received files, of which it may keep parts.
  func release() {
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

  // MARK: The image's bytes

  /// Copies the next bytes of the image, at most `HelperLayout.inputByteCount`, to the helper.
  /// - `maxFileByteCount`: the size to which it may then extend a temporary file.
  func write(_ bytes: RawSpan, maxFileByteCount: UInt64) {
    lease?.process.limitFiles(byteCount: maxFileByteCount)
    lease?.process.write(bytes)
    input?.write(bytes)
  }

  /// Copies a part of an image for overlays, at most `HelperLayout.inputByteCount`, to the helper.
  func writeAuxiliary(_ bytes: RawSpan) { lease?.process.write(bytes) }

  /// Notes that the helper has consumed bytes.
  func consume(_ byteCount: Int) { input?.consume(byteCount) }

  // MARK: Requests

  /// Whether the image was cancelled.
  var isCancelled: Bool { cancellation.isCancelled }

  /// Sends a request and receives its responses.
  ///
  /// The helper is given back after an error.
  /// - Parameters:
  ///   - request: The request.
  ///   - makeFile: Returns the descriptor of a new temporary file of a size in bytes, or -1.
  ///   - collect: Called with each response, to check it and to copy its output.
  /// - Returns: The responses together.
  /// - Throws: The image's error, or that of a helper that was lost.
  func exchange(
    _ request: HelperRequest, makeFile: (UInt64) -> Int32,
    collect: (HelperResponse, HelperProcess) throws(HelperLoss) -> Void
  ) throws(PipelineError) -> HelperResponse {
    guard let process else {
      throw PipelineError(.internalDefect, "an image without a process was continued")
    }
    let message = request.bytes(work: number) { pool.encode($0) }
    try check(messageByteCount: message.count)
    let response: HelperResponse
    do throws(HelperLoss) {
      response = try responses(to: message, of: process, makeFile, collect)
    } catch {
      let error = self.error(of: error)
      release()
      throw error
    }
    for span in response.spans { span.replay(to: tracing.tracer, in: tracing.context, isPreview: tracing.isPreview) }
    if let error = response.error {
      release()
      throw error
    }
    return response
  }

  /// - Throws: `limitExceeded` if a request is larger than a message to a helper can be.
  private func check(messageByteCount: Int) throws(PipelineError) {
    let limit = HelperLayout.messageByteCount
    guard messageByteCount > limit else { return }
    throw PipelineError(
      .limitExceeded,
      "the fields of the request take \(messageByteCount) bytes for the process that works on the image; at most "
        + "\(limit) are accepted; send the renditions in several requests, or with fewer fields",
      limit: PipelineError.Limit(
        name: "request_bytes_for_process", limit: UInt64(limit), value: UInt64(messageByteCount)))
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
  func abandon() {
    guard let process else { return }
    process.cancel(work: number)
    _ = try? exchange(.abandon, makeFile: { _ in -1 }) { (response, process) throws(HelperLoss) in
      guard !response.isPartial, response.segments.isEmpty else { throw process.end(.misbehaved) }
    }
  }

  /// Returns the error of an image whose helper was lost, and keeps the image's bytes if that was requested.
  private func error(of loss: HelperLoss) -> PipelineError {
    guard !cancellation.isCancelled else { return .cancelled }
    pool.noteLoss()
    input?.keep()
    return PipelineError(loss)
  }
}

/// The limits that the system enforces on the helper of one image.
struct HelperLimit {
  /// The private memory in bytes that a helper may use before its image is admitted, and beyond what is charged
  /// afterwards: for libraries that allocate by themselves.
  private static let uncountedByteCount: UInt64 = 256 << 20
  /// The unit of the memory limit in bytes, so that it is the same for most images.
  private static let unitByteCount: UInt64 = 64 << 20

  /// The CPU time of the image in seconds; `nil` for no limit.
  let cpuSeconds: UInt64?
  /// The private memory in bytes.
  let byteCount: UInt64

  /// Creates the limits of an image that was admitted with `admitted` bytes.
  init(_ limits: ImageLimits, admitted: UInt64) {
    cpuSeconds = limits.maxCPUTime.map { UInt64(clamping: $0.components.seconds) + 1 }
    // Blocks are reused with some waste, so that twice the charged memory is still no leak.
    byteCount = ((Self.uncountedByteCount + 2 * admitted) / Self.unitByteCount + 1) * Self.unitByteCount
  }
}

/// The CPU time that a helper has used for one image, in nanoseconds.
struct HelperCPUTime {
  /// The time that the helper had used before the image.
  var before: UInt64 = 0
  private var used: UInt64 = 0
  private var taken: UInt64 = 0

  init(before: UInt64 = 0) { self.before = before }

  /// Notes how much the helper has used by now.
  mutating func note(_ process: HelperProcess) {
    let now = process.cpuTime
    if now > before { used = max(used, now - before) }
  }

  /// Returns the time that was noted since the last call.
  mutating func take() -> Duration {
    defer { taken = used }
    return .nanoseconds(Int64(clamping: used - taken))
  }
}

extension PipelineError {
  /// The error of an image whose helper was lost.
  init(_ loss: HelperLoss) {
    switch loss {
    case .notStarted, .orphaned:
      self.init(.overloaded, "the process that works on the image ended: \(loss); try again later")
    case .exited, .misbehaved:
      self.init(.codecCrashed, "the process that worked on the image failed: \(loss)")
    case .signaled(SIGKILL):
      self.init(
        .codecCrashed, "the process that worked on the image was killed, possibly because the system has no memory left"
      )
    case .signaled: self.init(.codecCrashed, "the codec crashed on the image: \(loss)")
    case .exceededCPUTime:
      self.init(.codecStopped, "the codec was stopped because \(loss), max_cpu_seconds_per_image")
    case .exceededMemory, .stalled: self.init(.codecStopped, "the codec was stopped because \(loss)")
    }
  }
}
