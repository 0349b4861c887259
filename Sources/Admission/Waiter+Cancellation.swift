package import ImagePipeline
package import WorkThreads

extension Waiter {
  /// Returns the outcome when the wait has ended, or when it is cancelled; call it once.
  ///
  /// - Parameters:
  ///   - cancelled: The outcome of a wait that is cancelled.
  ///   - cancellation: Ends the wait when it is cancelled.
  ///   - leave: Called when it is cancelled. Takes the waiter out of its list; returns `false` if it is not there any
  ///     more, because somebody ends it.
  /// - Returns: The first outcome.
  package func outcome(
    or cancelled: Outcome, when cancellation: Cancellation, leave: @escaping @Sendable () -> Bool
  ) async -> Outcome {
    let handler = cancellation.addHandler { if leave() { self.end(cancelled) } }
    defer { cancellation.removeHandler(handler) }
    return await outcome()
  }
}
