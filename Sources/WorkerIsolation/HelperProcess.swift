internal import CSandbox

/// A helper process and the worker's end of its channel.
///
/// It processes one request at a time and belongs to the thread that made it; only `cancel` may be called from others.
/// The process ends with this object. It is unchecked because of the pointers to memory that both processes share: this
/// class alone accesses them, and the other process can change only bytes.
package final class HelperProcess: @unchecked Sendable {
  /// The interval in milliseconds at which the progress of a helper that does not answer is checked.
  private static let checkInterval: Int32 = 1000
  /// The number of checks without any use of CPU time after which a helper is ended.
  private static let maxStalledCheckCount = 30
  /// The number of checks after which a helper is ended that was cancelled.
  private static let maxCancelledCheckCount = 5

  /// The process id.
  package let processID: Int32
  /// The private memory of the process at its start in bytes.
  private let initialByteCount: UInt64
  private let id: UInt32
  private let generation: Int
  private let zygote: HelperZygote
  private var channel: csandbox_channel
  private let message = UnsafeMutableRawBufferPointer.allocate(byteCount: HelperLayout.messageByteCount, alignment: 8)
  /// Why the process does not answer any more; `nil` while it does.
  package private(set) var loss: HelperLoss?
  /// The CPU time in nanoseconds that the process had used when it was lost.
  private var finalCPUTime: UInt64 = 0
  /// The limits that are set, so that equal ones are not set again: that costs a system call each.
  private var limits: (cpuSeconds: UInt64, byteCount: UInt64) = (0, 0)
  /// Whether the input has bytes since it was returned to the system.
  private var hasWritten = false

  init(
    _ channel: csandbox_channel, id: UInt32, generation: Int, processID: Int32, initialByteCount: UInt64,
    zygote: HelperZygote
  ) {
    self.channel = channel
    self.id = id
    self.generation = generation
    self.processID = processID
    self.initialByteCount = initialByteCount
    self.zygote = zygote
  }

  deinit {
    zygote.discard(id, generation: generation)
    csandbox_channel_destroy(&channel)
    message.deallocate()
  }

  // MARK: Shared memory

  /// Copies an image's bytes, at most `HelperLayout.inputByteCount`, to where the next request finds them.
  package func write(_ bytes: RawSpan) {
    bytes.withUnsafeBytes { bytes in
      guard let source = bytes.baseAddress else { return }
      channel.shared.advanced(by: HelperLayout.current.inputOffset)
        .update(from: source.assumingMemoryBound(to: UInt8.self), count: min(bytes.count, HelperLayout.inputByteCount))
    }
    hasWritten = true
  }

  /// Returns the memory of the input and the output to the system, which the next image takes anew.
  package func discard() {
    guard hasWritten else { return }
    hasWritten = false
    let layout = HelperLayout.current
    csandbox_discard(channel.shared.advanced(by: layout.inputOffset), layout.byteCount - layout.inputOffset)
  }

  /// Lends the part of the output that a response describes.
  ///
  /// The helper may change its bytes meanwhile, so they must be copied before anything depends on them.
  /// - Throws: `misbehaved` if the range is not within the output.
  package func withOutput(_ range: Range<Int>, _ body: (RawSpan) -> Void) throws(HelperLoss) {
    guard range.lowerBound >= 0, range.upperBound <= HelperLayout.outputByteCount else { throw end(.misbehaved) }
    let bytes = UnsafeRawBufferPointer(
      start: channel.shared.advanced(by: HelperLayout.current.outputOffset + range.lowerBound), count: range.count)
    body(bytes.bytes)
  }

  /// Makes the helper stop the work with this number, at least 1, or has no effect if it does other work.
  ///
  /// It can be called from any thread.
  package func cancel(work: UInt32) { csandbox_flag_set(channel.shared, work) }

  // MARK: Limits

  /// The CPU time in nanoseconds that the process has used.
  package var cpuTime: UInt64 { loss == nil ? csandbox_cpu_time(processID) : finalCPUTime }

  /// Limits what the process may use from now on.
  ///
  /// - Parameters:
  ///   - cpuSeconds: the CPU time in seconds after which the system ends the process; `nil` for no limit.
  ///   - used: the CPU time in nanoseconds that the process has used.
  ///   - byteCount: the memory in bytes, in addition to that at its start, beyond which the system refuses memory.
  package func limit(cpuSeconds: UInt64?, used: UInt64, byteCount: UInt64) {
    let seconds = cpuSeconds.map { used / 1_000_000_000 + $0 + 1 } ?? 0
    if seconds != limits.cpuSeconds { _ = csandbox_limit_cpu_time(processID, seconds) }
    if byteCount != limits.byteCount { _ = csandbox_limit_data(processID, initialByteCount + byteCount) }
    limits = (seconds, byteCount)
  }

  // MARK: Requests

  /// Whether the process waits for a request: it has neither ended nor sent anything.
  package var isReady: Bool { loss == nil && csandbox_wait(channel.socket, -1, 0) == 0 }

  /// Sends a request that has no response.
  package func send(_ request: [UInt8]) throws(HelperLoss) {
    if let loss { throw loss }
    guard request.count <= HelperLayout.messageByteCount,
      request.withUnsafeBytes({ csandbox_send(channel.socket, $0.baseAddress, $0.count, -1) })
    else { throw end(zygote.loss(of: id, generation: generation)) }
  }

  /// Waits for the next response, and supplies temporary files meanwhile.
  ///
  /// - `work`: the number of the current work.
  /// - `makeFile`: returns the descriptor of a new file without a name, or -1; it is closed after it was sent.
  package func receive(work: UInt32, makeFile: () -> Int32) throws(HelperLoss) -> [UInt8] {
    if let loss { throw loss }
    var progress = Progress()
    while true {
      let ready = csandbox_wait(channel.socket, channel.files, Self.checkInterval)
      if ready & 1 != 0 { return try receiveMessage() }
      if ready & 2 != 0 { try supplyFile(makeFile) }
      if ready == 0 { try check(&progress, work) }
    }
  }

  private func receiveMessage() throws(HelperLoss) -> [UInt8] {
    let count = csandbox_receive(channel.socket, message.baseAddress, message.count, nil, -1)
    guard count > 0 else { throw end(zygote.loss(of: id, generation: generation)) }
    return [UInt8](message[..<count])
  }

  private func supplyFile(_ makeFile: () -> Int32) throws(HelperLoss) {
    var request: UInt8 = 0
    guard csandbox_receive(channel.files, &request, 1, nil, 0) == 1 else {
      throw end(zygote.loss(of: id, generation: generation))
    }
    // Made only now: the socket of a helper that has ended is readable too.
    let file = makeFile()
    _ = csandbox_send(channel.files, &request, 1, file)
    csandbox_close(file)
  }

  /// The progress of a helper that is expected to answer.
  private struct Progress {
    var cpuTime: UInt64 = 0
    var stalledCheckCount = 0
    var cancelledCheckCount = 0
  }

  private func check(_ progress: inout Progress, _ work: UInt32) throws(HelperLoss) {
    let cpuTime = csandbox_cpu_time(processID)
    progress.stalledCheckCount = cpuTime == progress.cpuTime ? progress.stalledCheckCount + 1 : 0
    progress.cpuTime = cpuTime
    if csandbox_flag_get(channel.shared) == work { progress.cancelledCheckCount += 1 }
    guard
      progress.stalledCheckCount >= Self.maxStalledCheckCount
        || progress.cancelledCheckCount >= Self.maxCancelledCheckCount
    else { return }
    throw end(.stalled)
  }

  /// Ends the process, which then answers nothing any more.
  package func end(_ loss: HelperLoss) -> HelperLoss {
    finalCPUTime = csandbox_cpu_time(processID)
    self.loss = loss
    zygote.discard(id, generation: generation)
    return loss
  }
}
