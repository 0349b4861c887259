/// The answer to a caller that waits for a result.
enum Answer: Sendable {
  case hit(CachedResult)
  /// The waiter becomes the leader: it must produce the result for all waiters.
  case lead
  /// The result cannot be shared: each waiter produces its own.
  case bypass
  /// The request that the caller wanted to wait for is over: look the result up again.
  case again
}

/// A caller that waits for a result.
struct Waiter: Sendable {
  var id: UInt64
  var continuation: CheckedContinuation<Result<Answer, any Error>, Never>
}

/// An in-flight request: a result that a leader is producing.
struct Flight: Sendable {
  /// The waiters, in the order of their arrival.
  var waiters: [Waiter] = []
  /// The number of the message that the leader is sending; `nil` while it is not sending.
  var sending: UInt64?
}

/// The results in memory, and the in-flight requests with their waiters.
struct CacheState: Sendable {
  /// The outcome of looking up a key.
  enum Entry {
    case hit(CachedResult)
    case lead
    case wait(UInt64)
  }

  let limit: Int
  let keepsEntries: Bool
  private var entries = RecentlyUsed<CachedResult>()
  private(set) var entryByteCount = 0
  /// The memory that is reserved for results in progress, in bytes.
  var pendingByteCount = 0
  var flights: [CacheKey: Flight] = [:]
  private var lastID: UInt64 = 0

  init(limit: Int, keepsEntries: Bool) {
    self.limit = limit
    self.keepsEntries = keepsEntries
  }

  mutating func use(_ key: CacheKey) -> CachedResult? { entries.use(key) }

  /// Reserves memory and evicts the least recently used results if needed; returns false if there is no room.
  mutating func reserve(_ byteCount: Int) -> Bool {
    guard pendingByteCount + byteCount <= limit else { return false }
    while entryByteCount + pendingByteCount + byteCount > limit, let oldest = entries.removeOldest() {
      entryByteCount -= oldest.value.cost
    }
    pendingByteCount += byteCount
    return true
  }

  mutating func keep(_ result: CachedResult, for key: CacheKey, reserved: Int) {
    pendingByteCount -= reserved
    guard keepsEntries else { return }
    entryByteCount += result.cost
    if let replaced = entries.insert(result, for: key) { entryByteCount -= replaced.cost }
  }

  mutating func remove(_ key: CacheKey) {
    if let removed = entries.remove(key) { entryByteCount -= removed.cost }
  }

  mutating func enter(_ key: CacheKey) -> Entry {
    if let result = entries.use(key) { return .hit(result) }
    guard flights[key] != nil else {
      flights[key] = Flight()
      return .lead
    }
    lastID += 1
    return .wait(lastID)
  }

  /// Adds a waiter to an in-flight request.
  /// - Returns: false if the request is no longer in flight.
  mutating func add(_ waiter: Waiter, for key: CacheKey) -> Bool {
    guard flights[key] != nil else { return false }
    flights[key]?.waiters.append(waiter)
    return true
  }

  mutating func removeWaiter(_ id: UInt64, for key: CacheKey) -> Waiter? {
    guard let index = flights[key]?.waiters.firstIndex(where: { $0.id == id }) else { return nil }
    return flights[key]?.waiters.remove(at: index)
  }

  mutating func promote(of key: CacheKey) -> Waiter? {
    guard var flight = flights[key] else { return nil }
    guard !flight.waiters.isEmpty else {
      flights[key] = nil
      return nil
    }
    let successor = flight.waiters.removeFirst()
    flight.sending = nil
    flights[key] = flight
    return successor
  }

  mutating func noteSending(_ key: CacheKey, isSending: Bool) {
    guard flights[key] != nil else { return }
    lastID += 1
    flights[key]?.sending = isSending ? lastID : nil
  }
}
