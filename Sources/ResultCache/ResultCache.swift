package import Logging
internal import Synchronization

/// The size limits of a cache, and its directory.
package struct CacheLimits: Sendable, Hashable {
  /// The memory limit in bytes; 0 caches nothing in memory.
  package var memoryByteCount: Int
  /// The total size limit of the files in bytes.
  package var diskByteCount: Int
  /// The directory of the files; `nil` to cache nothing on disk.
  package var directory: String?

  package init(memoryByteCount: Int = 100 << 20, diskByteCount: Int = 500 << 20, directory: String? = nil) {
    self.memoryByteCount = memoryByteCount
    self.diskByteCount = diskByteCount
    self.directory = directory
  }

  /// The maximum size of a cached result in bytes.
  static let maxResultByteCount = 32 << 20
}

/// A cache of results in memory and, if a directory is given, on disk.
///
/// It evicts the least recently used results first. Results in progress count against the memory limit too. A caller
/// that requests a result that another caller is already producing waits for it.
package final class ResultCache: Sendable {
  /// The outcome of looking up a result.
  package enum Lookup: Sendable {
    /// The result is cached, or has just become available.
    case hit(CachedResult)
    /// The caller is the leader: it must produce the result and pass it to the collector, and others may wait for it.
    case lead(ResultCollector)
    /// The caller must produce the result for itself only.
    case bypass
  }

  /// The time that a leader may be blocked by its client before other callers stop waiting for it.
  private static let leaderTimeout = Duration.seconds(1)

  private let state: Mutex<CacheState>
  let disk: DiskStore?

  /// Opens a cache.
  /// - Throws: `CacheError` if the directory cannot be used.
  package init(limits: CacheLimits, logger: Logger) throws(CacheError) {
    // Results need memory while they are collected, even if they are only written to disk.
    let room = limits.memoryByteCount > 0 ? limits.memoryByteCount : CacheLimits.maxResultByteCount
    state = Mutex(CacheState(limit: room, keepsEntries: limits.memoryByteCount > 0))
    disk =
      if let directory = limits.directory, limits.diskByteCount > 0 {
        try DiskStore(directory: directory, limit: limits.diskByteCount, logger: logger)
      } else { nil }
  }

  /// The memory in use in bytes, for cached results and results in progress.
  package var memoryByteCount: Int { state.withLock { $0.entryByteCount + $0.pendingByteCount } }
  /// The total size of all files in bytes.
  package var diskByteCount: Int { disk?.byteCount ?? 0 }

  /// Returns the result if it is cached; blocks while it is read from disk.
  package func result(for key: CacheKey) -> CachedResult? {
    if let result = state.withLock({ $0.use(key) }) {
      disk?.noteUse(key)
      return result
    }
    guard let result = readFile(key) else { return nil }
    keep(result, for: key, reserved: result.cost)
    return result
  }

  /// Removes results that must not be used any more; blocks while files are removed.
  package func remove(_ keys: [CacheKey]) {
    for key in keys {
      state.withLock { $0.remove(key) }
      disk?.discard(key)
    }
  }

  /// Looks up a result, and waits while another caller is producing it.
  /// - `onWait`: receives a function that ends the wait early, for use when the caller's client has disconnected.
  /// - Throws: the error of the leader, or `CacheError.stopped` if the wait was ended.
  package func lookUp(
    _ key: CacheKey, onWait: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
  ) async throws -> Lookup {
    while true {
      switch state.withLock({ $0.enter(key) }) {
      case .hit(let result):
        disk?.noteUse(key)
        return .hit(result)
      case .lead:
        let collector = ResultCollector(cache: self, flight: key)
        guard let result = readFile(key) else { return .lead(collector) }
        keep(result, for: key, reserved: result.cost)
        return .hit(result)
      case .wait(let id): if let outcome = try await wait(for: key, id, onWait: onWait) { return outcome }
      }
    }
  }

  /// Returns a collector of a result for which nobody can wait, because its key is not known yet.
  package func collector() -> ResultCollector { ResultCollector(cache: self, flight: nil) }

  private func readFile(_ key: CacheKey) -> CachedResult? {
    disk?.read(key) { [self] in
      reserve($0, beside: 0)
    } release: { [self] in
      release($0)
    }
  }

  /// Waits for an in-flight request.
  /// - Returns: `nil` if the request ended before the wait started.
  private func wait(
    for key: CacheKey, _ id: UInt64, onWait: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
  ) async throws -> Lookup? {
    try await withThrowingTaskGroup(of: (isOver: Bool, outcome: Lookup?).self) { group in
      group.addTask { [self] in
        let answer = await withCheckedContinuation { continuation in
          guard state.withLock({ $0.add(Waiter(id: id, continuation: continuation), for: key) }) else {
            return continuation.resume(returning: .success(.again))
          }
          onWait { self.stop(id, key, with: .failure(CacheError.stopped)) }
        }
        switch try answer.get() {
        case .hit(let result): return (true, .hit(result))
        case .lead: return (true, .lead(ResultCollector(cache: self, flight: key)))
        case .bypass: return (true, .bypass)
        case .again: return (true, nil)
        }
      }
      group.addTask { [self] in
        await watch(key, id)
        return (false, nil)
      }
      defer { group.cancelAll() }
      while let answer = try await group.next() { if answer.isOver { return answer.outcome } }
      return nil
    }
  }

  /// Ends the wait if the leader is blocked because its client does not read.
  private func watch(_ key: CacheKey, _ id: UInt64) async {
    var last: UInt64?
    while true {
      do { try await Task.sleep(for: Self.leaderTimeout) } catch { return }
      let sending = state.withLock { $0.flights[key]?.sending }
      if let sending, sending == last { return stop(id, key, with: .success(.bypass)) }
      last = sending
    }
  }

  private func stop(_ id: UInt64, _ key: CacheKey, with answer: Result<Answer, any Error>) {
    state.withLock { $0.removeWaiter(id, for: key) }?.continuation.resume(returning: answer)
  }

  /// Reserves memory for more bytes of a result that already uses `buffered` bytes; returns false if there is no room.
  func reserve(_ byteCount: Int, beside buffered: Int) -> Bool {
    guard buffered + byteCount <= CacheLimits.maxResultByteCount else { return false }
    return state.withLock { $0.reserve(byteCount) }
  }

  func release(_ byteCount: Int) { state.withLock { $0.pendingByteCount -= byteCount } }

  /// Stores a result whose memory was reserved, and passes it to all waiters.
  func keep(_ result: CachedResult, for key: CacheKey, reserved: Int) {
    state.withLock { $0.keep(result, for: key, reserved: reserved) }
    settle(key, with: .success(.hit(result)))
  }

  /// Sends `answer` to all waiters.
  func settle(_ key: CacheKey, with answer: Result<Answer, any Error>) {
    let waiters = state.withLock { $0.flights.removeValue(forKey: key)?.waiters ?? [] }
    for waiter in waiters { waiter.continuation.resume(returning: answer) }
  }

  /// Promotes the first waiter to leader; the others keep waiting.
  func handOver(_ key: CacheKey) {
    state.withLock { $0.promote(of: key) }?.continuation.resume(returning: .success(.lead))
  }

  func noteSending(_ key: CacheKey, isSending: Bool) {
    state.withLock { $0.noteSending(key, isSending: isSending) }
  }
}
