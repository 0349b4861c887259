internal import CSandbox
internal import Synchronization

/// The size in bytes to which a process can extend a temporary file at its start, and the unit of this limit.
private let initialFileByteCount = UInt64(CSANDBOX_FILE_BYTES)

/// A helper process and the worker's end of its channel.
///
/// It processes one request at a time and belongs to the thread that made it; only `cancel` may be called from others.
/// The process ends with this object. It is unchecked because of the pointers to memory that both processes share: this
/// class alone accesses them, and the other process can change only bytes.
package final class HelperProcess: @unchecked Sendable {
  /// The interval in milliseconds at which a helper that does not answer is checked.
  private static let checkInterval: Int32 = 250
  /// The maximum number of temporary files for one image: decoders need at most one for each component and its data, and
  /// each of up to 16 results with a gain map needs two.
  private static let maxFileCount = 48

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
  private var limits = (cpuSeconds: UInt64(0), byteCount: UInt64(0), fileByteCount: initialFileByteCount)
  /// The highest number of work that was cancelled.
  ///
  /// The helper has a copy in shared memory, which it can overwrite.
  private let cancelled = Atomic<UInt32>(0)
  private var work: UInt32 = 0
  private var watch = HelperWatch(HelperTimeouts(), activeTime: 0)
  private var fileCount = 0
  /// Whether the process has received temporary files, of which it may keep parts in its memory.
  package private(set) var hasFiles = false
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

  // MARK: Work

  /// Whether this process was forked by the zygote that forks now, so that its addresses are not known from a crash.
  package var isCurrent: Bool { zygote.isCurrent(generation) }

  /// Begins work on an image.
  ///
  /// - Parameters:
  ///   - work: its number, higher than that of the process's work before.
  ///   - timeouts: how long to wait for the helper.
  ///   - used: the CPU time in nanoseconds that the process has used.
  package func begin(work: UInt32, timeouts: HelperTimeouts, used: UInt64) {
    self.work = work
    watch = HelperWatch(timeouts, activeTime: used)
    fileCount = 0
  }

  /// Makes the helper stop the work with this number, at least 1, or has no effect if it does other work.
  ///
  /// A helper that
  /// does not stop is ended.
  ///
  /// It can be called from any thread.
  package func cancel(work: UInt32) {
    cancelled.max(work, ordering: .releasing)
    csandbox_flag_set(channel.shared, work)
  }

  // MARK: Limits

  /// The CPU time in nanoseconds that the process has used.
  package var cpuTime: UInt64 { loss == nil ? csandbox_cpu_time(processID) : finalCPUTime }

  /// The time in nanoseconds for which a process has used a processor, or was ready and waited for one.
  package static func activeTime(of process: Int32) -> UInt64 { csandbox_active_time(process) }

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
    (limits.cpuSeconds, limits.byteCount) = (seconds, byteCount)
  }

  /// Limits the size to which the process can extend a temporary file, to at least `byteCount` bytes.
  package func limitFiles(byteCount: UInt64) {
    let unit = initialFileByteCount
    let limit = max(1, (byteCount + unit - 1) / unit) * unit
    guard limit != limits.fileByteCount else { return }
    _ = csandbox_limit_file_size(processID, limit)
    limits.fileByteCount = limit
  }

  // MARK: Requests

  /// Whether the process waits for a request: it has neither ended nor sent anything.
  package var isReady: Bool { loss == nil && csandbox_wait(channel.socket, channel.files, 0) == 0 }

  /// Sends a request, without waiting: a helper that has answered has received what was sent before.
  package func send(_ request: [UInt8]) throws(HelperLoss) {
    if let loss { throw loss }
    guard request.count <= HelperLayout.messageByteCount else { throw end(.misbehaved) }
    try checkSent(request.withUnsafeBytes { csandbox_send_now(channel.socket, $0.baseAddress, $0.count, -1) })
  }

  private func checkSent(_ status: Int32) throws(HelperLoss) {
    guard status != 0 else { return }
    throw end(Int(status) == CSANDBOX_TIMED_OUT ? .misbehaved : zygote.loss(of: id, generation: generation))
  }

  /// Waits for the next response, and supplies temporary files meanwhile.
  ///
  /// - `makeFile`: returns the descriptor of a new file without a name of a size in bytes, or -1; it is closed after it
  ///   was sent.
  package func receive(makeFile: (UInt64) -> Int32) throws(HelperLoss) -> [UInt8] {
    if let loss { throw loss }
    watch.begin()
    while true {
      let ready = csandbox_wait(channel.socket, channel.files, Self.checkInterval)
      let isCancelled = work > 0 && cancelled.load(ordering: .acquiring) >= work
      guard !watch.isOver(isCancelled: isCancelled, readActiveTime: { Self.activeTime(of: processID) }) else {
        throw end(.stalled)
      }
      if ready & 1 != 0 { return try receiveMessage() }
      if ready & 2 != 0 { try supplyFile(makeFile) }
    }
  }

  private func receiveMessage() throws(HelperLoss) -> [UInt8] {
    let count = csandbox_receive(channel.socket, message.baseAddress, message.count, nil, -1)
    guard count > 0 else { throw end(zygote.loss(of: id, generation: generation)) }
    return [UInt8](message[..<count])
  }

  private func supplyFile(_ makeFile: (UInt64) -> Int32) throws(HelperLoss) {
    var byteCount: UInt64 = 0
    let size = MemoryLayout<UInt64>.size
    let count = csandbox_receive(channel.files, &byteCount, size, nil, 0)
    guard count > 0 else { throw end(zygote.loss(of: id, generation: generation)) }
    fileCount += 1
    guard count == size, fileCount <= Self.maxFileCount else { throw end(.misbehaved) }
    // Made only now: the socket of a helper that has ended is readable too.
    let file = makeFile(byteCount)
    hasFiles = hasFiles || file >= 0
    let status = csandbox_send_now(channel.files, &byteCount, 1, file)
    csandbox_close(file)
    try checkSent(status)
  }

  /// Ends the process, which is not needed any more.
  package func retire() { zygote.discard(id, generation: generation) }

  /// Ends the process, which then answers nothing any more.
  ///
  /// The next ones get other addresses.
  package func end(_ loss: HelperLoss) -> HelperLoss {
    finalCPUTime = csandbox_cpu_time(processID)
    self.loss = loss
    zygote.discard(id, generation: generation)
    zygote.renew(after: generation)
    return loss
  }
}
