internal import Admission
internal import ImagePipeline
internal import Synchronization
internal import WorkThreads
package import WorkerIsolation

/// The helper processes of a worker: each works on one image at a time, and on images of one caller only.
///
/// A helper that a hostile image has taken over can read what is in its memory and falsify what it does next. A caller
/// therefore gets a helper that has worked on its own images, or a new one.
///
/// As many as there are image threads stay ready. Images that wait for their bytes keep their helpers, so there may be
/// more for a time, up to a limit at which further images wait in order of arrival. Uploads, which may take as long as
/// their clients like, leave a quarter of that limit to images that arrive in one message.
package final class HelperPool: Sendable {
  /// An image that waits; its wait ends without a helper if it is cancelled, or if none could be started.
  struct Entry {
    let caller: String
    let isUpload: Bool
    let waiter = Waiter<Lease?>()
  }

  struct State {
    /// The helpers that work on no image; the last one was used last.
    var idle: [Lease] = []
    /// The number of helpers, including those that work on images.
    var count = 0
    /// The number of helpers that work on uploads.
    var uploadCount = 0
    var waiting: [Entry] = []
    var processIDs: Set<Int32> = []
    var startedCount: UInt64 = 0
    var lostCount: UInt64 = 0
    var missingDefenses: MissingDefenses = []

    /// Removes and returns an idle helper that has worked for a caller, or for nobody yet.
    mutating func takeIdle(for caller: String) -> Lease? {
      let index = idle.lastIndex { $0.caller == caller } ?? idle.lastIndex { $0.caller == nil }
      return index.map { idle.remove(at: $0) }
    }

    /// Notes that a helper ends.
    mutating func forget(_ lease: Lease) {
      count -= 1
      processIDs.remove(lease.process.processID)
    }
  }

  /// A helper and what it has worked on.
  struct Lease: Sendable {
    let process: HelperProcess
    /// The results of the helper that are in the cache.
    let kept = KeptResults()
    /// The caller whose images it works on; `nil` for a new helper.
    private(set) var caller: String?
    /// Whether it is lent to an image that arrives in several messages.
    private(set) var isForUpload = false
    var imageCount = 0

    fileprivate func lent(to caller: String, isUpload: Bool) -> Lease {
      var lease = self
      (lease.caller, lease.isForUpload) = (caller, isUpload)
      return lease
    }
  }

  /// A source of helpers for an image.
  private enum Source {
    case idle(Lease)
    /// A new helper, in place of an idle one of another caller if there is no room for more.
    case new(replacing: Lease?)
    case none
  }

  /// The memory in bytes that a helper needs in addition to its image's working set: of its own, and shared, with
  /// `inputByteCount` bytes of the image.
  package static let helperByteCount = 3 << 20
  /// The bytes of an image in shared memory that `helperByteCount` includes; an image in fewer requests needs more.
  static let inputByteCount = 1 << 20
  /// The maximum of the memory in bytes that a helper is charged.
  package static let maxHelperByteCount = helperByteCount + HelperLayout.inputByteCount - inputByteCount
  /// The number of images after which a helper is replaced, so that nothing that an image leaves behind stays for long.
  static let maxImageCount = 256

  let zygote: HelperZygote
  let warmCount: Int
  /// The maximum number of helpers.
  package let maxCount: Int
  /// The maximum number of helpers that work on uploads.
  let maxUploadCount: Int
  private let maxWaitingCount: Int
  /// How long images wait for helpers that do nothing.
  let timeouts: HelperTimeouts
  /// The files of images whose helpers were lost; `nil` if none are kept.
  let crashes: CrashDirectory?
  let state = Mutex(State())
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
  ///   - timeouts: How long images wait for helpers that do nothing.
  ///   - crashes: The directory for images whose helpers were lost.
  package init(
    zygote: HelperZygote = HelperZygote(arguments: [CodecHelper.command]), threadCount: Int, maxCount: Int = 256,
    maxWaitingCount: Int = 256, timeouts: HelperTimeouts = HelperTimeouts(), crashes: CrashDirectory? = nil
  ) {
    self.zygote = zygote
    warmCount = threadCount
    self.maxCount = max(maxCount, 2 * threadCount)
    maxUploadCount = self.maxCount - self.maxCount / 4
    self.maxWaitingCount = maxWaitingCount
    self.timeouts = timeouts
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
  /// The number of processes that fork helpers, and that were replaced because they were stopped or had ended.
  package var replacedZygoteCount: UInt64 { zygote.replacedCount }
  /// The names of the defenses that helpers lack because the system does not offer them.
  package var missingDefenses: [String] { state.withLock { $0.missingDefenses.names } }
  /// The process ids of the helpers, and of the process that forks them.
  package var processIDs: (zygote: Int32?, helpers: Set<Int32>) {
    (zygote.processID, state.withLock { $0.processIDs })
  }

  /// Starts the helpers that stay ready.
  /// - Throws: The reason why helpers cannot be started here.
  package func warmUp() throws(HelperLoss) {
    while state.withLock({ $0.count < warmCount }) {
      state.withLock { $0.count += 1 }
      giveBack(try startProcess(), isUsable: true)
    }
  }

  // MARK: Borrow

  /// Returns a helper, and waits for one if there are too many.
  ///
  /// - `caller`: the caller or connection that the image belongs to.
  /// - `isUpload`: whether the image arrives in several messages.
  /// - Throws: `overloaded` if too many images wait or no helper can be started; `cancelled`.
  func borrow(
    for caller: String, isUpload: Bool, _ cancellation: Cancellation
  ) async throws(PipelineError) -> Lease {
    let entry = Entry(caller: caller, isUpload: isUpload)
    var isWaiting = false
    while !isWaiting {
      if let lease = try borrowIfAvailable(for: caller, isUpload: isUpload) { return lease }
      try cancellation.check()
      isWaiting = try wait(entry)
    }
    let lease = await entry.waiter.outcome(or: nil, when: cancellation) { [self] in
      state.withLock { $0.waiting.removeFirst { $0.waiter === entry.waiter } } != nil
    }
    if let lease { return lease.lent(to: caller, isUpload: isUpload) }
    try cancellation.check()
    // The last helper has ended in the meantime, so that there is room for a new one.
    return try borrowNow(for: caller, isUpload: isUpload)
  }

  /// Lets an image wait for a helper.
  /// - Returns: `false` if one may have been given back, or has ended, since the last attempt to borrow one.
  /// - Throws: `overloaded` if too many images wait.
  private func wait(_ entry: Entry) throws(PipelineError) -> Bool {
    try state.withLock { state throws(PipelineError) in
      guard state.waiting.count < maxWaitingCount else {
        throw PipelineError(
          .overloaded, "\(maxWaitingCount) images are already waiting for a process; try again later")
      }
      guard state.count >= maxCount && state.idle.isEmpty || !mayLend(isUpload: entry.isUpload, state) else {
        return false
      }
      state.waiting.append(entry)
      return true
    }
  }

  /// Whether an image may get a helper if there is one.
  func mayLend(isUpload: Bool, _ state: State) -> Bool { !isUpload || state.uploadCount < maxUploadCount }

  /// Returns a helper without waiting.
  /// - Throws: `overloaded` if there is none.
  func borrowNow(for caller: String, isUpload: Bool = false) throws(PipelineError) -> Lease {
    if let lease = try borrowIfAvailable(for: caller, isUpload: isUpload) { return lease }
    throw PipelineError(.overloaded, "every process that works on images is busy; try again later")
  }

  private func borrowIfAvailable(for caller: String, isUpload: Bool) throws(PipelineError) -> Lease? {
    var unusable: [Lease] = []  // ended without the lock
    let source: Source = state.withLock { state in
      guard mayLend(isUpload: isUpload, state) else { return .none }
      state.uploadCount += isUpload ? 1 : 0
      while let lease = state.takeIdle(for: caller) {
        if lease.process.isReady, lease.process.isCurrent { return .idle(lease) }
        // It was killed while it was idle, which costs no image, or has sent what nobody asked for.
        state.forget(lease)
        unusable.append(lease)
      }
      guard state.count >= maxCount else {
        state.count += 1
        return .new(replacing: nil)
      }
      guard !state.idle.isEmpty else {
        state.uploadCount -= isUpload ? 1 : 0
        return .none
      }
      let other = state.idle.removeFirst()
      state.processIDs.remove(other.process.processID)
      return .new(replacing: other)
    }
    for lease in unusable {
      if !lease.process.isReady { lease.kept.revoke() }
      lease.process.retire()
    }
    switch source {
    case .idle(let lease): return lease.lent(to: caller, isUpload: isUpload)
    case .none: return nil
    case .new(let other):
      other?.process.retire()
      do throws(PipelineError) { return try start().lent(to: caller, isUpload: isUpload) } catch {
        state.withLock { $0.uploadCount -= isUpload ? 1 : 0 }
        throw error
      }
    }
  }

  /// Starts a helper that is already counted.
  func start() throws(PipelineError) -> Lease {
    do throws(HelperLoss) { return try startProcess() } catch {
      throw PipelineError(.overloaded, "no process for the image can be started: \(error); try again later")
    }
  }

  private func startProcess() throws(HelperLoss) -> Lease {
    do throws(HelperLoss) {
      let lease = Lease(process: try zygote.start())
      // The answer shows that it is in its sandbox.
      lease.process.begin(work: 0, timeouts: HelperTimeouts(), used: 0)
      try lease.process.send(HelperRequest.abandon.bytes(work: 0))
      guard let response = HelperResponse(try lease.process.receive { _ in -1 }) else {
        throw lease.process.end(.misbehaved)
      }
      state.withLock { state in
        state.missingDefenses = response.missingDefenses
        state.startedCount += 1
        state.processIDs.insert(lease.process.processID)
      }
      return lease
    } catch {
      let stranded = state.withLock { state -> [Entry] in
        state.count -= 1
        guard state.count == 0 else { return [] }
        defer { state.waiting = [] }
        return state.waiting
      }
      // No helper is left that could be given back to them.
      for entry in stranded { entry.waiter.end(nil) }
      throw error
    }
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

  /// Records that a helper ended while it worked on an image.
  func noteLoss() { state.withLock { $0.lostCount += 1 } }

  /// Returns memory that idle helpers do not need to the system.
  package func trim() {
    // Nobody borrows a helper meanwhile, which would write to this memory.
    state.withLock { state in for lease in state.idle { lease.process.discard() } }
  }
}
