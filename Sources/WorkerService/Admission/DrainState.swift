internal import ImagePipeline
internal import Synchronization

/// Whether the worker is finishing up, and what it still works on.
///
/// Once the drain has begun, work goes on until `cancelWork`.
package final class DrainState: Sendable {
  private struct State {
    var isDraining = false
    var refusesCalls = false
    var isOver = false
    var nextID: UInt64 = 0
    var startedCount: UInt64 = 0
    var work: [UInt64: Cancellation] = [:]
    var handlers: [UInt64: @Sendable () -> Void] = [:]
  }

  private let state = Mutex(State())

  package init() {}

  package var isDraining: Bool { state.withLock { $0.isDraining } }

  /// Calls that are being served now.
  package var workCount: Int { state.withLock { $0.work.count } }

  /// Calls that were begun since the process started, those that have ended included.
  package var startedCount: UInt64 { state.withLock { $0.startedCount } }

  /// New work is refused from now on: items of batches, and calls.
  ///
  /// Call it before the server's own shutdown begins.
  ///
  /// - `refusesCalls`: not where a listener refuses those that their clients have sent too late, because only it knows.
  package func begin(refusesCalls: Bool = true) {
    let handlers = state.withLock { state in
      state.isDraining = true
      state.refusesCalls = refusesCalls
      defer { state.handlers = [:] }
      return Array(state.handlers.values)
    }
    for handler in handlers { handler() }
  }

  /// Cancels whatever still works: the drain's time is over.
  ///
  /// Its callers are told that the worker drains.
  package func cancelWork() {
    let work = state.withLock { state in
      state.isOver = true
      return Array(state.work.values)
    }
    for cancellation in work { cancellation.cancel() }
  }

  /// Runs one call's work, counted among what a drain waits for.
  /// - Throws: `DrainError` when the drain has begun, and what the work throws.
  func withWork<Result>(
    _ body: (Cancellation) async throws -> Result
  ) async throws -> Result {
    let cancellation = Cancellation()
    let id = try state.withLock { state in
      guard !state.refusesCalls, !state.isOver else { throw DrainError() }
      state.nextID += 1
      state.startedCount += 1
      state.work[state.nextID] = cancellation
      return state.nextID
    }
    defer { state.withLock { _ = $0.work.removeValue(forKey: id) } }
    return try await body(cancellation)
  }

  /// What a caller is told of an error: that the worker drains, where work was cancelled for that.
  func reason(_ error: any Error) -> any Error {
    let isCancelled = (error as? PipelineError)?.code == .cancelled
    return isCancelled && state.withLock { $0.isOver } ? DrainError() : error
  }

  /// Calls `handler` when the drain begins, at once if it has; until `removeHandler`.
  func addHandler(_ handler: @escaping @Sendable () -> Void) -> UInt64 {
    let id: UInt64? = state.withLock { state in
      guard !state.isDraining else { return nil }
      state.nextID += 1
      state.handlers[state.nextID] = handler
      return state.nextID
    }
    if id == nil { handler() }
    return id ?? 0
  }

  func removeHandler(_ id: UInt64) {
    state.withLock { _ = $0.handlers.removeValue(forKey: id) }
  }
}

/// The refusal of work, or the end of it, because the worker shuts down.
struct DrainError: Error, CustomStringConvertible {
  var description: String { "the worker is shutting down; retry on another one" }
}
