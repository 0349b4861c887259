internal import Synchronization

/// Whether the worker serves, for everyone who asks or watches.
package final class HealthState: Sendable {
  /// What a health check answers.
  package enum Status: Sendable, Hashable {
    case serving, notServing
  }

  private struct State {
    var isMeantToServe = false
    var isStuck = false
    var nextID: UInt64 = 0
    var watchers: [UInt64: AsyncStream<Status>.Continuation] = [:]

    var status: Status { isMeantToServe && !isStuck ? .serving : .notServing }
  }

  /// The services whose health can be asked; the empty name stands for the worker as a whole.
  package let services: Set<String>
  private let state = Mutex(State())

  /// Not serving, until `set`.
  package init(services: Set<String>) {
    self.services = services.union([""])
  }

  package var status: Status { state.withLock { $0.status } }

  /// Whether the worker has not begun to shut down, stuck or not.
  var isMeantToServe: Bool { state.withLock { $0.isMeantToServe } }

  /// How many watch now.
  package var watcherCount: Int { state.withLock { $0.watchers.count } }

  /// Sets what the worker means to do, which holds while it is not stuck.
  package func set(_ status: Status) { change { $0.isMeantToServe = status == .serving } }

  /// Sets whether the worker is stuck, and so does not serve though it means to.
  package func setStuck(_ isStuck: Bool) { change { $0.isStuck = isStuck } }

  /// Changes the state, and tells the watchers where that changes the status.
  private func change(_ body: (inout State) -> Void) {
    state.withLock { state in
      let before = state.status
      body(&state)
      let status = state.status
      guard status != before else { return }
      // Under the lock, so that of two changes at once no watcher is told the older one last. Yielding to a stream of
      // bounded buffer runs no code of the watcher's.
      for watcher in state.watchers.values { watcher.yield(status) }
    }
  }

  /// Calls `body` with the statuses from now on, the present one first.
  ///
  /// A slow watcher misses all but the newest.
  func watch(_ body: (AsyncStream<Status>, AsyncStream<Status>.Continuation) async throws -> Void) async rethrows {
    let (stream, continuation) = AsyncStream<Status>.makeStream(bufferingPolicy: .bufferingNewest(1))
    let id = state.withLock { state in
      state.nextID += 1
      state.watchers[state.nextID] = continuation
      continuation.yield(state.status)
      return state.nextID
    }
    defer { state.withLock { _ = $0.watchers.removeValue(forKey: id) } }
    try await body(stream, continuation)
  }
}
