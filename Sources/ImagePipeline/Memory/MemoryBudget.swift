internal import Synchronization

/// The memory that all images of a worker share, handed out in arrival order.
///
/// An image reserves what its plan needs before it decodes, and waits while others hold too much. Small ones may pass a
/// large one that is first in line, as far as there is room for both: what has passed it never reserves so much that it
/// would not fit beside that, so it waits only for those that were admitted before it came first.
///
/// Uploads of formats whose header is known only at their end are held before there is a plan. They count, up to half of
/// the limit, beside what is reserved: but while nothing is reserved, the first in line is let in however much is held, or
/// uploads that wait for memory would wait for each other. So all together never take more than one and a half times the
/// limit, and that only while an image that needs nearly all of it is worked on alone.
package final class MemoryBudget: Sendable {
  fileprivate struct Waiter {
    var id: UInt64
    var byteCount: Int
    var continuation: CheckedContinuation<Admission?, Never>
  }

  /// How an image got its memory.
  fileprivate enum Admission: Sendable {
    case inTurn
    /// Before another that came earlier.
    case passing
  }

  fileprivate struct State {
    var used = 0
    /// What of `used` passed others.
    var passed = 0
    var buffered = 0
    var peak = 0
    var nextID: UInt64 = 0
    var waiters: [Waiter] = []
  }

  /// The bytes that all images together may reserve.
  package let limit: Int
  /// The images that may wait.
  package let maxWaiting: Int
  private let state = Mutex(State())

  package init(limit: Int, maxWaiting: Int) {
    self.limit = limit
    self.maxWaiting = maxWaiting
  }

  /// The bytes reserved now.
  package var used: Int { state.withLock { $0.used } }
  /// The bytes of uploads that are held without a plan.
  package var buffered: Int { state.withLock { $0.buffered } }
  /// What uploads may hold together.
  package var reservationLimit: Int { limit / 2 }
  /// The most bytes that were reserved at once.
  package var peak: Int { state.withLock { $0.peak } }
  /// The images that wait now.
  package var waitingCount: Int { state.withLock { $0.waiters.count } }

  /// Reserves `byteCount` bytes until the reservation ends, waiting for its turn.
  /// - Throws: `limitExceeded` when it can never fit, `overloaded` when too many wait already, `cancelled`.
  package func reserve(_ byteCount: Int, cancellation: Cancellation) async throws(PipelineError) -> Reservation {
    try checkLimit(byteCount)
    try cancellation.check()
    switch state.withLock({ $0.take(byteCount, limit: limit, maxWaiting: maxWaiting) }) {
    case .taken(let admission): return Reservation(byteCount: byteCount, admission: admission, budget: self)
    case .full:
      throw PipelineError(.overloaded, "\(maxWaiting) images are waiting for memory already; try again later")
    case .wait(let id):
      guard let admission = await wait(id, byteCount, cancellation) else { throw .cancelled }
      return Reservation(byteCount: byteCount, admission: admission, budget: self)
    }
  }

  /// Reserves `byteCount` bytes if there is room for them now, beside those who wait.
  /// - Throws: `limitExceeded` when it can never fit, `overloaded` when it does not fit now.
  package func reserveNow(_ byteCount: Int) throws(PipelineError) -> Reservation {
    try checkLimit(byteCount)
    guard case .taken(let admission) = state.withLock({ $0.take(byteCount, limit: limit, maxWaiting: 0) }) else {
      throw PipelineError(
        .overloaded, "\(byteCount) bytes of memory are not free: \(used) of \(limit) are in use; try again later")
    }
    return Reservation(byteCount: byteCount, admission: admission, budget: self)
  }

  /// Counts `byteCount` bytes more that an upload holds, or refuses.
  fileprivate func hold(_ byteCount: Int, beside own: Int) throws(PipelineError) {
    guard own + byteCount <= reservationLimit else {
      throw PipelineError(
        exceeding: "memory_limit", limit: UInt64(reservationLimit), value: UInt64(own + byteCount),
        unit: "bytes to buffer its file, which may use half of the memory")
    }
    let others: Int? = state.withLock { state in
      guard state.buffered + byteCount <= reservationLimit else { return state.buffered - own }
      state.buffered += byteCount
      return nil
    }
    guard let others else { return }
    throw PipelineError(
      .overloaded,
      "\(own + byteCount) bytes to buffer the file are not free: other files use \(others) of \(reservationLimit); "
        + "try again later")
  }

  /// Counts `byteCount` bytes of a message whose image has no plan yet as held, until `endHold`.
  /// - Returns: whether there was room for them.
  package func holdNow(_ byteCount: Int) -> Bool {
    do throws(PipelineError) { try hold(byteCount, beside: 0) } catch { return false }
    return true
  }

  package func endHold(_ byteCount: Int) { letGo(byteCount) }

  fileprivate func letGo(_ byteCount: Int) {
    state.withLock { $0.buffered -= byteCount }
    admitWaiters()
  }

  private func checkLimit(_ byteCount: Int) throws(PipelineError) {
    guard byteCount > limit else { return }
    throw PipelineError(
      exceeding: "memory_limit", limit: UInt64(limit), value: UInt64(byteCount), unit: "bytes of memory")
  }

  /// - Returns: `nil` when cancelled.
  private func wait(_ id: UInt64, _ byteCount: Int, _ cancellation: Cancellation) async -> Admission? {
    let handler = Mutex<UInt64>(0)
    let granted: Admission? = await withCheckedContinuation { continuation in
      let admission: Admission? = state.withLock { state in
        // Between being told to wait and waiting, room may have been given back.
        if let admission = state.admit(byteCount, limit: limit) { return admission }
        state.waiters.append(Waiter(id: id, byteCount: byteCount, continuation: continuation))
        return nil
      }
      if let admission { return continuation.resume(returning: admission) }
      let registered = cancellation.addHandler { [self] in abandon(id) }
      handler.withLock { $0 = registered }
    }
    cancellation.removeHandler(handler.withLock { $0 })
    return granted
  }

  private func abandon(_ id: UInt64) {
    let waiter = state.withLock { state in
      state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0) }
    }
    waiter?.continuation.resume(returning: nil)
    admitWaiters()
  }

  fileprivate func release(_ byteCount: Int, _ admission: Admission) {
    state.withLock { state in
      state.used -= byteCount
      if admission == .passing { state.passed -= byteCount }
    }
    admitWaiters()
  }

  private func admitWaiters() {
    let admitted = state.withLock { $0.admitWaiters(limit: limit) }
    for (waiter, admission) in admitted { waiter.continuation.resume(returning: admission) }
  }
}

extension MemoryBudget.State {
  fileprivate enum Outcome {
    case taken(MemoryBudget.Admission)
    case full
    case wait(UInt64)
  }

  fileprivate func fits(_ byteCount: Int, limit: Int) -> Bool { used == 0 || byteCount <= limit - used - buffered }

  fileprivate mutating func add(_ byteCount: Int) {
    used += byteCount
    peak = max(peak, used)
  }

  fileprivate mutating func take(_ byteCount: Int, limit: Int, maxWaiting: Int) -> Outcome {
    if let admission = admit(byteCount, limit: limit) { return .taken(admission) }
    guard waiters.count < maxWaiting else { return .full }
    nextID += 1
    return .wait(nextID)
  }

  /// Reserves for one who is not in line, where there is room.
  fileprivate mutating func admit(_ byteCount: Int, limit: Int) -> MemoryBudget.Admission? {
    if let first = waiters.first { return pass(byteCount, by: first.byteCount, limit: limit) ? .passing : nil }
    guard fits(byteCount, limit: limit) else { return nil }
    add(byteCount)
    return .inTurn
  }

  /// Reserves before the first in line, which needs `first` bytes, where that costs it no time.
  private mutating func pass(_ byteCount: Int, by first: Int, limit: Int) -> Bool {
    guard byteCount <= limit - used - buffered, byteCount <= limit - buffered - passed - first else { return false }
    add(byteCount)
    passed += byteCount
    return true
  }

  /// Reserves for those in line for whom there is room now, and takes them out of it.
  fileprivate mutating func admitWaiters(limit: Int) -> [(MemoryBudget.Waiter, MemoryBudget.Admission)] {
    var admitted: [(MemoryBudget.Waiter, MemoryBudget.Admission)] = []
    while let next = waiters.first, fits(next.byteCount, limit: limit) {
      add(next.byteCount)
      admitted.append((waiters.removeFirst(), .inTurn))
    }
    guard let first = waiters.first else { return admitted }
    var index = 1
    while index < waiters.count {
      if pass(waiters[index].byteCount, by: first.byteCount, limit: limit) {
        admitted.append((waiters.remove(at: index), .passing))
      } else {
        index += 1
      }
    }
    return admitted
  }
}

/// Memory set aside for one image; given back when it ends.
package struct Reservation: ~Copyable, Sendable {
  package let byteCount: Int
  private let admission: MemoryBudget.Admission
  private let budget: MemoryBudget

  fileprivate init(byteCount: Int, admission: MemoryBudget.Admission, budget: MemoryBudget) {
    self.byteCount = byteCount
    self.admission = admission
    self.budget = budget
  }

  deinit { budget.release(byteCount, admission) }
}

/// What an upload holds before it has a plan; given back when it ends.
package struct Hold: ~Copyable, Sendable {
  /// Counted in portions, so that small windows do not each take the budget's lock.
  private static let portionByteCount = 256 * 1024

  private let budget: MemoryBudget
  private var byteCount = 0

  package init(budget: MemoryBudget) {
    self.budget = budget
  }

  /// Counts at least `byteCount` bytes; what was counted stays so.
  /// - Throws: `overloaded` when others hold too much, `limitExceeded` when it can never fit.
  package mutating func grow(to byteCount: Int) throws(PipelineError) {
    guard byteCount > self.byteCount else { return }
    let portions = (byteCount - self.byteCount + Self.portionByteCount - 1) / Self.portionByteCount
    try budget.hold(portions * Self.portionByteCount, beside: self.byteCount)
    self.byteCount += portions * Self.portionByteCount
  }

  /// Gives back what was counted.
  package mutating func release() {
    if byteCount > 0 { budget.letGo(byteCount) }
    byteCount = 0
  }

  deinit { if byteCount > 0 { budget.letGo(byteCount) } }
}
