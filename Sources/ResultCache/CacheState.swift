internal import WorkThreads

/// The answer to a caller that waits for a result.
enum Answer: Sendable {
  case hit(CachedResult)
  /// The waiter becomes the leader: it must produce the result for all waiters.
  case lead
  /// The result cannot be shared: each waiter produces its own.
  case bypass
}

/// A caller that waits for a result.
typealias CacheWaiter = Waiter<Result<Answer, any Error>>

/// An in-flight request: a result that a leader is producing.
struct Flight: Sendable {
  /// The waiters, in the order of their arrival.
  var waiters: [CacheWaiter] = []
  /// The number of the message that the leader is sending; `nil` while it is not sending.
  var sending: UInt64?
}

/// The results in memory, and the in-flight requests with their waiters.
struct CacheState: Sendable {
  /// The outcome of looking up a key.
  enum Entry {
    case hit(CachedResult)
    case lead
    case wait(CacheWaiter)
  }

  let limit: Int
  let keepsEntries: Bool
  private var entries = RecentlyUsed<CachedResult>()
  private(set) var entryByteCount = 0
  /// The number of results that were removed because they must not be used any more.
  private(set) var removalCount: UInt64 = 0
  /// The memory that is reserved for results in progress, in bytes.
  var pendingByteCount = 0
  var flights: [CacheKey: Flight] = [:]
  /// The number of messages that leaders have begun or ended to send.
  private var sendingCount: UInt64 = 0

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

  /// - `removals`: `removalCount` when the result was not in doubt; `nil` for a new one.
  mutating func keep(_ result: CachedResult, for key: CacheKey, reserved: Int, since removals: UInt64? = nil) {
    pendingByteCount -= reserved
    guard keepsEntries, removals ?? removalCount == removalCount else { return }
    entryByteCount += result.cost
    if let replaced = entries.insert(result, for: key) { entryByteCount -= replaced.cost }
  }

  mutating func remove(_ key: CacheKey) {
    removalCount += 1
    if let removed = entries.remove(key) { entryByteCount -= removed.cost }
  }

  mutating func enter(_ key: CacheKey) -> Entry {
    if let result = entries.use(key) { return .hit(result) }
    guard flights[key] != nil else {
      flights[key] = Flight()
      return .lead
    }
    let waiter = CacheWaiter()
    flights[key]?.waiters.append(waiter)
    return .wait(waiter)
  }

  /// Takes out the first waiter, which becomes the leader; the others keep waiting.
  mutating func promote(of key: CacheKey) -> CacheWaiter? {
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
    sendingCount += 1
    flights[key]?.sending = isSending ? sendingCount : nil
  }
}
