package import Logging
internal import Synchronization
internal import WorkThreads

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

  let state: Mutex<CacheState>
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
    return readFile(key)
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
    switch state.withLock({ $0.enter(key) }) {
    case .hit(let result):
      disk?.noteUse(key)
      return .hit(result)
    case .lead:
      let collector = ResultCollector(cache: self, flight: key)
      return readFile(key).map(Lookup.hit) ?? .lead(collector)
    case .wait(let waiter):
      onWait { self.stop(waiter, key, with: .failure(CacheError.stopped)) }
      async let _ = watch(key, waiter)
      switch try await waiter.outcome().get() {
      case .hit(let result): return .hit(result)
      case .lead: return .lead(ResultCollector(cache: self, flight: key))
      case .bypass: return .bypass
      }
    }
  }

  /// Returns a collector of a result for which nobody can wait, because its key is not known yet.
  package func collector() -> ResultCollector { ResultCollector(cache: self, flight: nil) }

  /// Reads a result from disk and stores it in memory, too.
  private func readFile(_ key: CacheKey) -> CachedResult? {
    let removals = state.withLock { $0.removalCount }
    guard let result = disk?.read(key, reserve: { reserve($0, beside: 0) }, release: { release($0) }) else {
      return nil
    }
    keep(result, for: key, reserved: result.cost, since: removals)
    return result
  }

  /// Ends the wait if the leader is blocked because its client does not read.
  private func watch(_ key: CacheKey, _ waiter: CacheWaiter) async {
    var last: UInt64?
    while true {
      do { try await Task.sleep(for: Self.leaderTimeout) } catch { return }
      let sending = state.withLock { $0.flights[key]?.sending }
      if let sending, sending == last { return stop(waiter, key, with: .success(.bypass)) }
      last = sending
    }
  }

  private func stop(_ waiter: CacheWaiter, _ key: CacheKey, with answer: Result<Answer, any Error>) {
    state.withLock { $0.flights[key]?.waiters.removeFirst { $0 === waiter } }?.end(answer)
  }

  /// Reserves memory for more bytes of a result that already uses `buffered` bytes; returns false if there is no room.
  func reserve(_ byteCount: Int, beside buffered: Int) -> Bool {
    guard buffered + byteCount <= CacheLimits.maxResultByteCount else { return false }
    return state.withLock { $0.reserve(byteCount) }
  }

  func release(_ byteCount: Int) { state.withLock { $0.pendingByteCount -= byteCount } }

  /// Stores a result whose memory was reserved, and passes it to all waiters.
  /// - `removals`: the number of removals before the result was read from disk; it is not stored after another one.
  func keep(_ result: CachedResult, for key: CacheKey, reserved: Int, since removals: UInt64? = nil) {
    state.withLock { $0.keep(result, for: key, reserved: reserved, since: removals) }
    settle(key, with: .success(.hit(result)))
  }

  /// Sends `answer` to all waiters.
  func settle(_ key: CacheKey, with answer: Result<Answer, any Error>) {
    let waiters = state.withLock { $0.flights.removeValue(forKey: key)?.waiters ?? [] }
    for waiter in waiters { waiter.end(answer) }
  }
}

/// A complete result in the cache.
package struct CachedResult: Sendable {
  /// Information about the result that the cache's owner stores with it; the cache does not interpret it.
  package let metadata: [UInt8]
  /// The bytes of the result, in the portions in which they are sent.
  package let chunks: [[UInt8]]

  /// The memory overhead of a block in bytes: its header, its array element, and rounding.
  static let blockOverhead = 64

  /// The memory that the result uses, in bytes.
  var cost: Int { chunks.reduce(Self.cost(of: metadata)) { $0 + Self.cost(of: $1) } }

  static func cost(of block: [UInt8]) -> Int { block.count + blockOverhead }
}

/// An error from the result cache.
package enum CacheError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The directory cannot be created or read; the text contains its path and the reason.
  case directory(String)
  /// The wait for a result was ended early, for example because the client disconnected.
  case stopped

  package var description: String {
    switch self {
    case .directory(let reason): reason
    case .stopped: "the wait for a cached result was stopped"
    }
  }
}
