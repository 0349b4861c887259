internal import ImagePipeline
internal import Synchronization

/// Whether the worker is shutting down, and the calls in progress.
///
/// After a drain has begun, calls continue until `cancelWork`.
package final class DrainState: Sendable {
  private struct State {
    var isOver = false
    var nextID: UInt64 = 0
    var startedCount: UInt64 = 0
    var work: [UInt64: Cancellation] = [:]
  }

  private let state = Mutex(State())
  /// The begin of the drain, whose handlers are called once.
  let start = Cancellation()

  /// Creates the state of a worker that serves calls.
  package init() {}

  /// Whether the drain has begun.
  package var isDraining: Bool { start.isCancelled }

  /// Whether its timeout is over, so that calls in progress were cancelled.
  package var isOver: Bool { state.withLock { $0.isOver } }

  /// The number of calls in progress.
  package var workCount: Int { state.withLock { $0.work.count } }

  /// The number of calls started since the process started, including those that have ended.
  package var startedCount: UInt64 { state.withLock { $0.startedCount } }

  /// Begins the drain: new items of batches are refused from now on.
  ///
  /// The listener refuses calls that were sent too late, because only it can tell.
  package func begin() { start.cancel() }

  /// Cancels all calls in progress when the drain's timeout is over.
  ///
  /// Their callers receive the error that the worker is shutting down.
  package func cancelWork() {
    let work = state.withLock { state in
      state.isOver = true
      return Array(state.work.values)
    }
    for cancellation in work { cancellation.cancel() }
  }

  /// Runs the work of one call, which a drain waits for.
  /// - Throws: `DrainError` after `cancelWork`, and the errors of the work.
  func withWork<Result>(
    _ body: (Cancellation) async throws -> Result
  ) async throws -> Result {
    let cancellation = Cancellation()
    let id = try state.withLock { state in
      guard !state.isOver else { throw DrainError() }
      state.nextID += 1
      state.startedCount += 1
      state.work[state.nextID] = cancellation
      return state.nextID
    }
    defer { state.withLock { _ = $0.work.removeValue(forKey: id) } }
    return try await body(cancellation)
  }

  /// Returns the error to report to a caller: `DrainError` if the drain cancelled the work, otherwise `error`.
  func reason(_ error: any Error) -> any Error {
    let isCancelled = (error as? PipelineError)?.code == .cancelled
    return isCancelled && state.withLock { $0.isOver } ? DrainError() : error
  }
}

/// The error of work that is refused or cancelled because the worker shuts down.
struct DrainError: Error, CustomStringConvertible {
  var description: String { "the worker is shutting down; retry on another one" }
}
