package import ImagePipeline
internal import Synchronization
package import WorkerIsolation

/// The helper processes of a worker: each works on one image at a time.
///
/// As many as there are image threads stay ready. Images that wait for their bytes keep their helpers, so there may be
/// more for a time, up to a limit at which further images wait in order of arrival.
package final class HelperPool: Sendable {
  private struct Waiter {
    let id: UInt64
    let continuation: CheckedContinuation<Lease?, Never>
  }

  private struct State {
    /// The helpers that work on no image; the last one was used last.
    var idle: [Lease] = []
    /// The number of helpers, including those that work on images.
    var count = 0
    var nextID: UInt64 = 0
    var waiters: [Waiter] = []
    var isClosed = false
    var processIDs: Set<Int32> = []
    var startedCount: UInt64 = 0
    var lostCount: UInt64 = 0
    var missingDefenses: MissingDefenses = []
  }

  /// A helper and the number of images that it has worked on.
  struct Lease: Sendable {
    let process: HelperProcess
    var imageCount = 0
  }

  /// The memory in bytes that a helper needs in addition to its image's working set: of its own, and shared, with
  /// `inputByteCount` bytes of the image.
  package static let helperByteCount = 3 << 20
  /// The bytes of an image in shared memory that `helperByteCount` includes; an image in fewer requests needs more.
  static let inputByteCount = 1 << 20
  /// The maximum of the memory in bytes that a helper is charged.
  package static let maxHelperByteCount = helperByteCount + HelperLayout.inputByteCount - inputByteCount
  /// The number of images after which a helper is replaced, so that nothing that an image leaves behind stays for long.
  private static let maxImageCount = 256

  private let zygote: HelperZygote
  private let warmCount: Int
  /// The maximum number of helpers.
  package let maxCount: Int
  private let maxWaitingCount: Int
  /// The files of images whose helpers were lost; `nil` if none are kept.
  let crashes: CrashDirectory?
  private let state = Mutex(State())
  /// The configuration that was sent last, which is likely to be sent again.
  private let lastConfiguration = Mutex<EncodedConfiguration?>(nil)

  /// Whether this build can isolate helpers.
  package static var isSupported: Bool { HelperZygote.isSupported }
  /// The version of libseccomp, whose filter helpers have; `nil` in a build without it.
  package static var libraryVersion: String? { HelperZygote.libraryVersion }

  /// Creates a pool without helpers.
  /// - Parameters:
  ///   - zygote: The process that forks helpers.
  ///   - threadCount: The number of helpers that stay ready.
  ///   - maxCount: The maximum number of helpers.
  ///   - maxWaitingCount: The maximum number of images that wait for a helper.
  ///   - crashes: The directory for images whose helpers were lost.
  package init(
    zygote: HelperZygote = HelperZygote(arguments: [CodecHelper.command]), threadCount: Int, maxCount: Int = 256,
    maxWaitingCount: Int = 256, crashes: CrashDirectory? = nil
  ) {
    self.zygote = zygote
    warmCount = threadCount
    self.maxCount = max(maxCount, 2 * threadCount)
    self.maxWaitingCount = maxWaitingCount
    self.crashes = crashes
  }

  /// The number of helpers, including those that work on images.
  package var count: Int { state.withLock { $0.count } }
  /// The number of helpers that work on no image.
  package var idleCount: Int { state.withLock { $0.idle.count } }
  /// The number of helpers that were started.
  package var startedCount: UInt64 { state.withLock { $0.startedCount } }
  /// The number of helpers that ended while they worked on an image.
  package var lostCount: UInt64 { state.withLock { $0.lostCount } }
  /// The names of the defenses that helpers lack because the system does not offer them.
  package var missingDefenses: [String] { state.withLock { $0.missingDefenses.names } }
  /// The process ids of the helpers, and of the process that forks them.
  package var processIDs: (zygote: Int32?, helpers: Set<Int32>) {
    (zygote.processID, state.withLock { $0.processIDs })
  }

  /// Starts the helpers that stay ready.
  /// - Throws: `overloaded` if helpers cannot be started here.
  package func warmUp() throws(PipelineError) {
    while state.withLock({ $0.count < warmCount }) { giveBack(try startCounted(), isUsable: true) }
  }

  // MARK: Borrow

  /// Returns a helper, and waits for one if there are too many.
  /// - Throws: `overloaded` if too many images wait or no helper can be started; `cancelled`.
  func borrow(_ cancellation: Cancellation) async throws(PipelineError) -> Lease {
    if let lease = try borrowIfAvailable() { return lease }
    try cancellation.check()
    let id: UInt64? = state.withLock { state in
      guard state.waiters.count < maxWaitingCount else { return nil }
      state.nextID += 1
      return state.nextID
    }
    guard let id else {
      throw PipelineError(.overloaded, "\(maxWaitingCount) images are waiting for a process already; try again later")
    }
    guard let lease = await wait(id, cancellation) else {
      try cancellation.check()
      // A helper has ended in the meantime, so that there is room for a new one.
      guard let lease = try borrowIfAvailable() else { throw Self.exhausted }
      return lease
    }
    return lease
  }

  /// Returns a helper without waiting.
  /// - Throws: `overloaded` if there is none.
  func borrowNow() throws(PipelineError) -> Lease {
    guard let lease = try borrowIfAvailable() else { throw Self.exhausted }
    return lease
  }

  private static var exhausted: PipelineError {
    PipelineError(.overloaded, "every process that works on images is busy; try again later")
  }

  private func borrowIfAvailable() throws(PipelineError) -> Lease? {
    enum Source { case idle(Lease), new, none }
    let source: Source = state.withLock { state in
      while let lease = state.idle.popLast() {
        if lease.process.isReady { return .idle(lease) }
        // It was killed while it was idle, which costs no image.
        Self.forget(lease, &state)
      }
      guard state.count < maxCount else { return .none }
      state.count += 1
      return .new
    }
    switch source {
    case .idle(let lease): return lease
    case .none: return nil
    case .new: return try start()
    }
  }

  private static func forget(_ lease: Lease, _ state: inout State) {
    state.count -= 1
    state.processIDs.remove(lease.process.processID)
  }

  private func startCounted() throws(PipelineError) -> Lease {
    state.withLock { $0.count += 1 }
    return try start()
  }

  /// Starts a helper that is already counted.
  private func start() throws(PipelineError) -> Lease {
    do throws(HelperLoss) {
      let lease = Lease(process: try zygote.start())
      // The answer shows that it is in its sandbox.
      try lease.process.send(HelperRequest.abandon.bytes(work: 0))
      guard let response = HelperResponse(try lease.process.receive(work: 0) { -1 }) else {
        throw lease.process.end(.misbehaved)
      }
      state.withLock { state in
        state.missingDefenses = response.missingDefenses
        state.startedCount += 1
        state.processIDs.insert(lease.process.processID)
      }
      return lease
    } catch {
      state.withLock { $0.count -= 1 }
      throw PipelineError(.overloaded, "no process for the image can be started: \(error); try again later")
    }
  }

  private func wait(_ id: UInt64, _ cancellation: Cancellation) async -> Lease? {
    let handler = Mutex<UInt64>(0)
    let lease: Lease? = await withCheckedContinuation { continuation in
      let lease: Lease? = state.withLock { state in
        if let lease = state.idle.popLast() { return lease }
        state.waiters.append(Waiter(id: id, continuation: continuation))
        return nil
      }
      if let lease { return continuation.resume(returning: lease) }
      let registered = cancellation.addHandler { [self] in resume(removing: { $0.id == id }, with: nil) }
      handler.withLock { $0 = registered }
    }
    cancellation.removeHandler(handler.withLock { $0 })
    return lease
  }

  /// Resumes the first waiting image that fits; returns `false` if there is none.
  @discardableResult
  private func resume(removing isResumed: (Waiter) -> Bool, with lease: Lease?) -> Bool {
    let waiter = state.withLock { state in
      state.waiters.firstIndex(where: isResumed).map { state.waiters.remove(at: $0) }
    }
    waiter?.continuation.resume(returning: lease)
    return waiter != nil
  }

  /// Returns the canonical bytes of a configuration.
  func encode(_ configuration: ProcessingConfiguration) -> [UInt8] {
    lastConfiguration.withLock { last in
      if let last, last.configuration == configuration { return last.bytes }
      let encoded = EncodedConfiguration(configuration)
      last = encoded
      return encoded.bytes
    }
  }

  // MARK: Give back

  /// Takes back a helper.
  /// - `isUsable`: whether it can work on another image; otherwise it ends.
  func giveBack(_ lease: Lease, isUsable: Bool) {
    guard isUsable, lease.imageCount < Self.maxImageCount else { return replace(lease) }
    if resume(removing: { _ in true }, with: lease) { return }
    state.withLock { state in
      if state.idle.count < warmCount, !state.isClosed {
        state.idle.append(lease)
      } else {
        Self.forget(lease, &state)
      }
    }
  }

  /// Records that a helper ended while it worked on an image.
  func noteLoss() { state.withLock { $0.lostCount += 1 } }

  /// Starts a helper instead of one that ends, if it is needed.
  private func replace(_ lease: Lease) {
    let isNeeded = state.withLock { state in
      Self.forget(lease, &state)
      guard !state.isClosed, state.count < warmCount || !state.waiters.isEmpty else { return false }
      state.count += 1
      return true
    }
    guard isNeeded else { return }
    do throws(PipelineError) { giveBack(try start(), isUsable: true) } catch {
      // The next image tries again; one that waits learns why.
      resume(removing: { _ in true }, with: nil)
    }
  }

  /// Returns memory that idle helpers do not need to the system.
  package func trim() {
    // Nobody borrows a helper meanwhile, which would write to this memory.
    state.withLock { state in for lease in state.idle { lease.process.discard() } }
  }

  /// Ends the helpers that work on no image; others end with their images.
  package func close() {
    state.withLock { state in
      state.isClosed = true
      for lease in state.idle { Self.forget(lease, &state) }
      state.idle = []
    }
  }
}
