internal import ImagePipeline
internal import WorkerIsolation

/// The use of a helper for one image, from the time it is borrowed until it is given back.
///
/// It belongs to one thread at a time, which blocks while the helper works.
final class HelperSession {
  private let pool: HelperPool
  private let limits: ImageLimits
  private let cancellation: Cancellation
  private let tracing: IsolatedWork.Target
  private var lease: HelperPool.Lease?
  private var number: UInt32 = 0
  private var handlerID: UInt64?
  private var cpuTime = HelperCPUTime()
  /// The file for the image's bytes, if they are kept after a crash.
  private var input: CrashFile?

  init(_ pool: HelperPool, limits: ImageLimits, cancellation: Cancellation, tracing: IsolatedWork.Target) {
    self.pool = pool
    self.limits = limits
    self.cancellation = cancellation
    self.tracing = tracing
  }

  deinit { release() }

  /// The helper; `nil` before it is borrowed and after it was given back.
  var process: HelperProcess? { lease?.process }

  // MARK: Borrow and give back

  /// Waits for a helper.
  /// - Throws: `overloaded`, `cancelled`.
  func begin() async throws(PipelineError) { begin(try await pool.borrow(cancellation)) }

  /// Takes a helper if one is available.
  /// - Throws: `overloaded`.
  func beginNow() throws(PipelineError) { begin(try pool.borrowNow()) }

  private func begin(_ lease: HelperPool.Lease) {
    var lease = lease
    lease.imageCount += 1
    self.lease = lease
    let (process, number) = (lease.process, UInt32(lease.imageCount))
    self.number = number
    cpuTime = HelperCPUTime(before: process.cpuTime)
    limit(byteCount: 0)
    handlerID = cancellation.addHandler { process.cancel(work: number) }
    input = pool.crashes?.makeFile()
  }

  /// Limits the helper to an image that was admitted with `byteCount` bytes.
  func limit(byteCount: UInt64) {
    let limit = HelperLimit(limits, admitted: byteCount)
    lease?.process.limit(cpuSeconds: limit.cpuSeconds, used: cpuTime.before, byteCount: limit.byteCount)
  }

  /// Gives the helper back.
  func release() {
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

  // MARK: The image's bytes

  /// Copies the next bytes of the image, at most `HelperLayout.inputByteCount`, to the helper.
  func write(_ bytes: RawSpan) {
    lease?.process.write(bytes)
    input?.write(bytes)
  }

  /// Notes that the helper has consumed bytes.
  func consume(_ byteCount: Int) { input?.consume(byteCount) }

  // MARK: Requests

  /// Sends a request and receives its responses.
  ///
  /// The helper is given back after an error.
  /// - Parameters:
  ///   - request: The request.
  ///   - returnsErrors: Whether the response contains an error of the image, instead of a throw.
  ///   - collect: Called with each response, to copy its output; returns the number of copied bytes.
  /// - Returns: The last response.
  /// - Throws: The image's error, or that of a helper that was lost.
  func exchange(
    _ request: HelperRequest, returnsErrors: Bool = false,
    collect: (HelperResponse, HelperProcess) throws(HelperLoss) -> Int
  ) throws(PipelineError) -> HelperResponse {
    guard let process else {
      throw PipelineError(.internalDefect, "an image without a process was continued")
    }
    let response: HelperResponse
    do throws(HelperLoss) {
      response = try responses(to: request, of: process, collect)
    } catch {
      let error = self.error(of: error)
      release()
      throw error
    }
    for span in response.spans { span.replay(to: tracing.tracer, in: tracing.context, isPreview: tracing.isPreview) }
    if let error = response.error {
      release()
      if !returnsErrors { throw error }
    }
    return response
  }

  private func responses(
    to request: HelperRequest, of process: HelperProcess,
    _ collect: (HelperResponse, HelperProcess) throws(HelperLoss) -> Int
  ) throws(HelperLoss) -> HelperResponse {
    try process.send(request.bytes(work: number) { pool.encode($0) })
    var outputByteCount = 0
    while true {
      let bytes = try process.receive(work: number) { limits.makeSpillFile() }
      guard let response = HelperResponse(bytes) else { throw process.end(.misbehaved) }
      outputByteCount += try collect(response, process)
      guard response.isPartial else { return response }
      guard !response.segments.isEmpty, outputByteCount <= limits.memory else { throw process.end(.misbehaved) }
      try process.send(HelperRequest.proceed.bytes(work: number))
    }
  }

  /// Ends a helper that sent a message which the protocol does not allow.
  /// - Returns: The error of its image.
  func endMisbehaved() -> PipelineError {
    guard let process else { return PipelineError(.internalDefect, "an image has no plan") }
    defer { release() }
    return error(of: process.end(.misbehaved))
  }

  /// Returns the error of an image whose helper was lost, and keeps the image's bytes if that was requested.
  private func error(of loss: HelperLoss) -> PipelineError {
    guard !cancellation.isCancelled else { return .cancelled }
    pool.noteLoss()
    input?.keep()
    return PipelineError(loss)
  }
}
