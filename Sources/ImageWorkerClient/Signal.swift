internal import Synchronization

/// Wakes all tasks that wait for a change.
final class Signal: Sendable {
  private struct State {
    var generation: UInt64 = 0
    var nextID: UInt64 = 0
    var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
  }

  private let state = Mutex(State())

  /// The number of changes so far; read it before looking at what may change.
  var generation: UInt64 { state.withLock { $0.generation } }

  func notify() {
    let waiters = state.withLock { state in
      state.generation += 1
      defer { state.waiters = [:] }
      return state.waiters
    }
    for waiter in waiters.values { waiter.resume() }
  }

  /// Waits for a change after the one with this number, or until the task is cancelled.
  func wait(after generation: UInt64) async {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          if state.generation != generation || Task.isCancelled { return true }
          state.waiters[id] = continuation
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      let waiter = state.withLock { $0.waiters.removeValue(forKey: id) }
      waiter?.resume()
    }
  }
}
