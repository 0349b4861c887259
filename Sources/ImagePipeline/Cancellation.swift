internal import Synchronization

/// A flag that stops the work on one image.
///
/// Running work checks the flag before every strip; waiting code registers a handler.
///
/// It is separate from task cancellation for two reasons: the cancellation of an RPC does not cancel its task, and a
/// server that shuts down gracefully also signals cancellation to calls that may still finish.
package final class Cancellation: Sendable {
  private struct State {
    var isCancelled = false
    var nextID: UInt64 = 0
    var handlers: [UInt64: @Sendable () -> Void] = [:]
  }

  private let state = Mutex(State())
  // Separate from the mutex, so that the check before each strip is a single load.
  private let flag = Atomic(false)

  // A second flag, outside this process.
  private let poll: (@Sendable () -> Bool)?

  /// Creates a flag that is not set.
  /// - Parameter poll: Returns whether the work was cancelled elsewhere; called before each strip.
  package init(poll: (@Sendable () -> Bool)? = nil) { self.poll = poll }

  /// Whether the work was cancelled.
  package var isCancelled: Bool { flag.load(ordering: .acquiring) || (poll?() ?? false) }

  /// Sets the flag and calls every registered handler once; later calls have no effect.
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

  /// Throws an error if the work was cancelled.
  /// - Throws: `cancelled` once the flag is set.
  package func check() throws(PipelineError) {
    if isCancelled { throw .cancelled }
  }

  /// Registers a handler to be called when the flag is set, or calls it immediately if the flag is already set.
  /// - Parameter handler: Called at most once.
  /// - Returns: An identifier for `removeHandler`.
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

  /// Removes a handler; has no effect if the handler was already called or is unknown.
  package func removeHandler(_ id: UInt64) {
    state.withLock { _ = $0.handlers.removeValue(forKey: id) }
  }
}

extension PipelineError {
  /// The error for work that the caller cancelled or abandoned.
  package static let cancelled = PipelineError(.cancelled, "the client cancelled the call")
}
