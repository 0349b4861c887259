internal import Synchronization

/// The memory that all pictures of a worker share, handed out in arrival order.
///
/// A picture reserves what its plan needs before it decodes, and waits while others hold too much. A picture that is
/// first in line is never overtaken, so a large one is not starved by small ones.
///
/// Uploads of formats whose header is known only at their end are held before there is a plan. They count, up to half of
/// the limit, beside what is reserved: but while nothing is reserved, the first in line is let in however much is held, or
/// uploads that wait for memory would wait for each other. So all together never take more than one and a half times the
/// limit, and that only while a picture that needs nearly all of it is worked on alone.
package final class MemoryBudget: Sendable {
  fileprivate struct Waiter {
    var id: UInt64
    var byteCount: Int
    var continuation: CheckedContinuation<Bool, Never>
  }

  fileprivate struct State {
    var used = 0
    var held = 0
    var peak = 0
    var nextID: UInt64 = 0
    var waiters: [Waiter] = []
  }

  /// The bytes that all pictures together may reserve.
  package let limit: Int
  /// The pictures that may wait.
  package let maxWaiting: Int
  private let state = Mutex(State())

  package init(limit: Int, maxWaiting: Int) {
    self.limit = limit
    self.maxWaiting = maxWaiting
  }

  /// The bytes reserved now.
  package var used: Int { state.withLock { $0.used } }
  /// The bytes of uploads that are held without a plan.
  package var held: Int { state.withLock { $0.held } }
  /// What uploads may hold together.
  package var holdLimit: Int { limit / 2 }
  /// The most bytes that were reserved at once.
  package var peak: Int { state.withLock { $0.peak } }
  /// The pictures that wait now.
  package var waitingCount: Int { state.withLock { $0.waiters.count } }

  /// Reserves `byteCount` bytes until the reservation ends, waiting for its turn.
  /// - Throws: `limitExceeded` when it can never fit, `overloaded` when too many wait already, `cancelled`.
  package func reserve(_ byteCount: Int, cancellation: Cancellation) async throws(PipelineError) -> Reservation {
    try checkLimit(byteCount)
    try cancellation.check()
    switch state.withLock({ $0.take(byteCount, limit: limit, maxWaiting: maxWaiting) }) {
    case .taken: return Reservation(byteCount: byteCount, budget: self)
    case .full:
      throw PipelineError(.overloaded, "\(maxWaiting) pictures wait for memory already; try again later")
    case .wait(let id):
      guard await wait(id, byteCount, cancellation) else { throw .cancelled }
      return Reservation(byteCount: byteCount, budget: self)
    }
  }

  /// Reserves `byteCount` bytes if there is room for them now and nobody waits.
  /// - Throws: `limitExceeded` when it can never fit, `overloaded` when it does not fit now.
  package func reserveNow(_ byteCount: Int) throws(PipelineError) -> Reservation {
    try checkLimit(byteCount)
    guard case .taken = state.withLock({ $0.take(byteCount, limit: limit, maxWaiting: 0) }) else {
      throw PipelineError(
        .overloaded, "there is no room for \(byteCount) bytes beside \(used) of \(limit) in use; try again later")
    }
    return Reservation(byteCount: byteCount, budget: self)
  }

  /// Counts `byteCount` bytes more that an upload holds, or refuses.
  fileprivate func hold(_ byteCount: Int, beside own: Int) throws(PipelineError) {
    guard own + byteCount <= holdLimit else {
      throw PipelineError(
        exceeding: "memory_limit", limit: UInt64(holdLimit), value: UInt64(own + byteCount),
        unit: "bytes for its file, for which there is half of the memory")
    }
    let others: Int? = state.withLock { state in
      guard state.held + byteCount <= holdLimit else { return state.held - own }
      state.held += byteCount
      return nil
    }
    guard let others else { return }
    throw PipelineError(
      .overloaded,
      "there is no room to hold \(own + byteCount) bytes of a file beside \(others) of \(holdLimit) that others hold; "
        + "try again later")
  }

  fileprivate func letGo(_ byteCount: Int) {
    state.withLock { $0.held -= byteCount }
    admitWaiters()
  }

  private func checkLimit(_ byteCount: Int) throws(PipelineError) {
    guard byteCount > limit else { return }
    throw PipelineError(
      exceeding: "memory_limit", limit: UInt64(limit), value: UInt64(byteCount), unit: "bytes of memory")
  }

  private func wait(_ id: UInt64, _ byteCount: Int, _ cancellation: Cancellation) async -> Bool {
    let handler = Mutex<UInt64>(0)
    let granted = await withCheckedContinuation { continuation in
      let isGranted = state.withLock { state in
        // Between being told to wait and waiting, room may have been given back.
        if state.waiters.isEmpty, state.fits(byteCount, limit: limit) {
          state.add(byteCount)
          return true
        }
        state.waiters.append(Waiter(id: id, byteCount: byteCount, continuation: continuation))
        return false
      }
      if isGranted { return continuation.resume(returning: true) }
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
    waiter?.continuation.resume(returning: false)
    admitWaiters()
  }

  fileprivate func release(_ byteCount: Int) {
    state.withLock { $0.used -= byteCount }
    admitWaiters()
  }

  private func admitWaiters() {
    let admitted = state.withLock { state in
      var admitted: [Waiter] = []
      while let next = state.waiters.first, state.fits(next.byteCount, limit: limit) {
        state.add(next.byteCount)
        admitted.append(state.waiters.removeFirst())
      }
      return admitted
    }
    for waiter in admitted { waiter.continuation.resume(returning: true) }
  }
}

extension MemoryBudget.State {
  fileprivate enum Outcome {
    case taken, full
    case wait(UInt64)
  }

  fileprivate func fits(_ byteCount: Int, limit: Int) -> Bool { used == 0 || byteCount <= limit - used - held }

  fileprivate mutating func add(_ byteCount: Int) {
    used += byteCount
    peak = max(peak, used)
  }

  fileprivate mutating func take(_ byteCount: Int, limit: Int, maxWaiting: Int) -> Outcome {
    if waiters.isEmpty, fits(byteCount, limit: limit) {
      add(byteCount)
      return .taken
    }
    guard waiters.count < maxWaiting else { return .full }
    nextID += 1
    return .wait(nextID)
  }
}

/// Memory set aside for one picture; given back when it ends.
package struct Reservation: ~Copyable, Sendable {
  package let byteCount: Int
  private let budget: MemoryBudget

  fileprivate init(byteCount: Int, budget: MemoryBudget) {
    self.byteCount = byteCount
    self.budget = budget
  }

  deinit { budget.release(byteCount) }
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
