internal import Synchronization

/// The health of the worker, for health checks and watches.
///
/// It is safe to use from any thread.
package final class HealthState: Sendable {
  /// The result of a health check.
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

  /// The services with a health status; the empty name stands for the worker as a whole.
  package let services: Set<String>
  private let state = Mutex(State())

  /// Creates a state that is not serving until `set(_:)` is called.
  package init(services: Set<String>) {
    self.services = services.union([""])
  }

  /// The current status: `notServing` while the worker is stuck or shuts down.
  package var status: Status { state.withLock { $0.status } }

  /// Whether the worker has started and is not shutting down; it may be stuck.
  var isMeantToServe: Bool { state.withLock { $0.isMeantToServe } }

  /// Whether an image thread is stuck.
  package var isStuck: Bool { state.withLock { $0.isStuck } }

  /// Number of active watches.
  package var watcherCount: Int { state.withLock { $0.watchers.count } }

  /// Sets the intended status, which applies while the worker is not stuck.
  package func set(_ status: Status) { change { $0.isMeantToServe = status == .serving } }

  /// Sets whether the worker is stuck; a stuck worker reports `notServing`.
  package func setStuck(_ isStuck: Bool) { change { $0.isStuck = isStuck } }

  /// Changes the state and notifies the watchers if the status changed.
  private func change(_ body: (inout State) -> Void) {
    state.withLock { state in
      let before = state.status
      body(&state)
      let status = state.status
      guard status != before else { return }
      // Yield under the lock, so that after two concurrent changes no watcher receives the older status last. Yielding
      // to a stream with a bounded buffer runs no code of the watcher.
      for watcher in state.watchers.values { watcher.yield(status) }
    }
  }

  /// Calls `body` with a stream of statuses that starts with the current one.
  ///
  /// A slow watcher receives only the newest status.
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
