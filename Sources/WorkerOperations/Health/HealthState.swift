internal import Synchronization

/// Whether the worker serves, for everyone who asks or watches.
package final class HealthState: Sendable {
  /// What a health check answers.
  package enum Status: Sendable, Hashable {
    case serving, notServing
  }

  private struct State {
    var status = Status.notServing
    var nextID: UInt64 = 0
    var watchers: [UInt64: AsyncStream<Status>.Continuation] = [:]
  }

  /// The services whose health can be asked; the empty name stands for the worker as a whole.
  package let services: Set<String>
  private let state = Mutex(State())

  /// Not serving, until `set`.
  package init(services: Set<String>) {
    self.services = services.union([""])
  }

  package var status: Status { state.withLock { $0.status } }

  /// How many watch now.
  package var watcherCount: Int { state.withLock { $0.watchers.count } }

  /// Changes the status and tells the watchers, unless it is the status already.
  package func set(_ status: Status) {
    state.withLock { state in
      guard state.status != status else { return }
      state.status = status
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
