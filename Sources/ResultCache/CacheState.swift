/// What those who wait are told.
enum Answer: Sendable {
  case hit(CachedResult)
  /// The result is theirs to make, for all who wait.
  case lead
  /// Each makes its own.
  case alone
  /// There is nothing to wait for any more: ask again.
  case again
}

struct Waiter: Sendable {
  var id: UInt64
  var continuation: CheckedContinuation<Result<Answer, any Error>, Never>
}

/// A result that somebody makes.
struct Flight: Sendable {
  /// First come, first.
  var waiters: [Waiter] = []
  /// The number of the message that is being sent, while one is.
  var sending: UInt64?
}

/// What a cache holds in memory, and who waits for what.
struct CacheState: Sendable {
  enum Entry {
    case hit(CachedResult)
    case lead
    case wait(UInt64)
  }

  let limit: Int
  let keepsEntries: Bool
  private var entries = RecentlyUsed<CachedResult>()
  private(set) var entryByteCount = 0
  /// Of results on their way.
  var pendingByteCount = 0
  var flights: [CacheKey: Flight] = [:]
  private var lastID: UInt64 = 0

  init(limit: Int, keepsEntries: Bool) {
    self.limit = limit
    self.keepsEntries = keepsEntries
  }

  mutating func use(_ key: CacheKey) -> CachedResult? { entries.use(key) }

  /// Makes room by letting go of what was not used for longest.
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

  mutating func enter(_ key: CacheKey) -> Entry {
    if let result = entries.use(key) { return .hit(result) }
    guard flights[key] != nil else {
      flights[key] = Flight()
      return .lead
    }
    lastID += 1
    return .wait(lastID)
  }

  /// - Returns: false when nobody makes the result any more.
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
