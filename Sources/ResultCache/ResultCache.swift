package import Logging
internal import Synchronization

/// What a cache may hold.
package struct CacheLimits: Sendable, Hashable {
  /// Bytes of memory; 0 keeps nothing there.
  package var memoryByteCount: Int
  /// Bytes of files.
  package var diskByteCount: Int
  /// Where the files are; `nil` for no files.
  package var directory: String?

  package init(memoryByteCount: Int = 100 << 20, diskByteCount: Int = 500 << 20, directory: String? = nil) {
    self.memoryByteCount = memoryByteCount
    self.diskByteCount = diskByteCount
    self.directory = directory
  }

  /// The largest result that is kept.
  static let maxResultByteCount = 32 << 20
}

/// Results by what they are results of, in memory and, when a directory is given, in files.
///
/// What was not used for longest goes first. Results that are on their way count against the memory too. Whoever asks
/// for a result that somebody else makes at the moment waits for that one.
package final class ResultCache: Sendable {
  /// What is to be done for a result.
  package enum Turn: Sendable {
    /// Nothing; here it is.
    case hit(CachedResult)
    /// It is the caller's to make, and others may wait for it: give it to the collector.
    case make(ResultCollector)
    /// It is the caller's to make, for nobody but itself.
    case alone
  }

  /// How long whoever makes a result may be held up by its caller before others stop waiting for it.
  private static let patience = Duration.seconds(1)

  private let state: Mutex<CacheState>
  let disk: DiskStore?

  /// - Throws: `CacheError` when the directory can't be used.
  package init(limits: CacheLimits, logger: Logger) throws(CacheError) {
    // Results on their way to files alone need room too.
    let room = limits.memoryByteCount > 0 ? limits.memoryByteCount : CacheLimits.maxResultByteCount
    state = Mutex(CacheState(limit: room, keepsEntries: limits.memoryByteCount > 0))
    disk =
      if let directory = limits.directory, limits.diskByteCount > 0 {
        try DiskStore(directory: directory, limit: limits.diskByteCount, logger: logger)
      } else { nil }
  }

  /// Bytes of memory in use, by results that are kept and by those on their way.
  package var memoryByteCount: Int { state.withLock { $0.entryByteCount + $0.pendingByteCount } }
  /// Bytes of all files.
  package var diskByteCount: Int { disk?.byteCount ?? 0 }

  /// The result, if it is kept; blocks while it is read from a file.
  package func result(for key: CacheKey) -> CachedResult? {
    if let result = state.withLock({ $0.use(key) }) {
      disk?.noteUse(key)
      return result
    }
    guard let result = readFile(key) else { return nil }
    keep(result, for: key, reserved: result.cost)
    return result
  }

  /// What is to be done for a result, once that is known: waits while somebody else makes it.
  /// - `onWait`: given what ends the wait early, when the caller's caller has left.
  /// - Throws: the error of whoever made it, `CacheError.stopped` when the wait was ended.
  package func turn(
    for key: CacheKey, onWait: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
  ) async throws -> Turn {
    while true {
      switch state.withLock({ $0.enter(key) }) {
      case .hit(let result):
        disk?.noteUse(key)
        return .hit(result)
      case .lead:
        let collector = ResultCollector(cache: self, flight: key)
        guard let result = readFile(key) else { return .make(collector) }
        keep(result, for: key, reserved: result.cost)
        return .hit(result)
      case .wait(let id): if let turn = try await wait(for: key, id, onWait: onWait) { return turn }
      }
    }
  }

  /// A collector of a result that nobody waits for, because its key is not known yet.
  package func collector() -> ResultCollector { ResultCollector(cache: self, flight: nil) }

  private func readFile(_ key: CacheKey) -> CachedResult? {
    disk?.read(key) { [self] in
      reserve($0, beside: 0)
    } release: { [self] in
      release($0)
    }
  }

  /// - Returns: `nil` when it ended before the wait began.
  private func wait(
    for key: CacheKey, _ id: UInt64, onWait: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
  ) async throws -> Turn? {
    try await withThrowingTaskGroup(of: (isOver: Bool, turn: Turn?).self) { group in
      group.addTask { [self] in
        let answer = await withCheckedContinuation { continuation in
          guard state.withLock({ $0.add(Waiter(id: id, continuation: continuation), for: key) }) else {
            return continuation.resume(returning: .success(.again))
          }
          onWait { self.stop(id, key, with: .failure(CacheError.stopped)) }
        }
        switch try answer.get() {
        case .hit(let result): return (true, .hit(result))
        case .lead: return (true, .make(ResultCollector(cache: self, flight: key)))
        case .alone: return (true, .alone)
        case .again: return (true, nil)
        }
      }
      group.addTask { [self] in
        await watch(key, id)
        return (false, nil)
      }
      defer { group.cancelAll() }
      while let answer = try await group.next() { if answer.isOver { return answer.turn } }
      return nil
    }
  }

  /// Ends the wait when whoever makes the result can't get on because its caller takes no bytes.
  private func watch(_ key: CacheKey, _ id: UInt64) async {
    var last: UInt64?
    while true {
      do { try await Task.sleep(for: Self.patience) } catch { return }
      let sending = state.withLock { $0.flights[key]?.sending }
      if let sending, sending == last { return stop(id, key, with: .success(.alone)) }
      last = sending
    }
  }

  private func stop(_ id: UInt64, _ key: CacheKey, with answer: Result<Answer, any Error>) {
    state.withLock { $0.removeWaiter(id, for: key) }?.continuation.resume(returning: answer)
  }

  /// Makes room for bytes of a result that has `held` already.
  func reserve(_ byteCount: Int, beside buffered: Int) -> Bool {
    guard buffered + byteCount <= CacheLimits.maxResultByteCount else { return false }
    return state.withLock { $0.reserve(byteCount) }
  }

  func release(_ byteCount: Int) { state.withLock { $0.pendingByteCount -= byteCount } }

  /// Keeps a result whose bytes were reserved, and gives it to all who wait for it.
  func keep(_ result: CachedResult, for key: CacheKey, reserved: Int) {
    state.withLock { $0.keep(result, for: key, reserved: reserved) }
    settle(key, with: .success(.hit(result)))
  }

  /// Answers all who wait.
  func settle(_ key: CacheKey, with answer: Result<Answer, any Error>) {
    let waiters = state.withLock { $0.flights.removeValue(forKey: key)?.waiters ?? [] }
    for waiter in waiters { waiter.continuation.resume(returning: answer) }
  }

  /// Lets the first of those who wait make the result; the others go on waiting.
  func handOver(_ key: CacheKey) {
    state.withLock { $0.promote(of: key) }?.continuation.resume(returning: .success(.lead))
  }

  func noteSending(_ key: CacheKey, isSending: Bool) {
    state.withLock { $0.noteSending(key, isSending: isSending) }
  }
}
