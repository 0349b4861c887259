internal import Synchronization

/// A flag that stops one image's work.
///
/// Work checks it before every strip; waiting registers a handler.
///
/// It is separate from task cancellation because the cancellation of an RPC does not cancel its task, and because a
/// server that shuts down gracefully signals it to calls that may still finish.
package final class Cancellation: Sendable {
  private struct State {
    var isCancelled = false
    var nextID: UInt64 = 0
    var handlers: [UInt64: @Sendable () -> Void] = [:]
  }

  private let state = Mutex(State())
  // Beside the mutex, so that the check before each strip is one load.
  private let flag = Atomic(false)

  package init() {}

  /// Whether the work was cancelled.
  package var isCancelled: Bool { flag.load(ordering: .acquiring) }

  /// Sets the flag and calls the registered handlers, once.
  package func cancel() {
    let handlers = state.withLock { state in
      guard !state.isCancelled else { return [@Sendable () -> Void]() }
      state.isCancelled = true
      defer { state.handlers = [:] }
      return Array(state.handlers.values)
    }
    flag.store(true, ordering: .releasing)
    for handler in handlers { handler() }
  }

  /// - Throws: `cancelled` once the flag is set.
  package func check() throws(PipelineError) {
    if isCancelled { throw .cancelled }
  }

  /// Calls `handler` when the flag is set, at once if it is already.
  /// - Returns: what `removeHandler` takes.
  package func addHandler(_ handler: @escaping @Sendable () -> Void) -> UInt64 {
    let id: UInt64? = state.withLock { state in
      guard !state.isCancelled else { return nil }
      state.nextID += 1
      state.handlers[state.nextID] = handler
      return state.nextID
    }
    if id == nil { handler() }
    return id ?? 0
  }

  /// Forgets a handler; one that was called or never was is none.
  package func removeHandler(_ id: UInt64) {
    state.withLock { _ = $0.handlers.removeValue(forKey: id) }
  }
}

extension PipelineError {
  /// The error of work whose caller cancelled it or left.
  package static let cancelled = PipelineError(.cancelled, "the client cancelled the call")
}
