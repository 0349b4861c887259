internal import Synchronization

/// One wait, which ends once: with the first outcome that it is given.
///
/// Whoever decides that something must wait puts its waiter into a list in the same critical section, and calls
/// `outcome` afterwards. Whoever takes the waiter out of that list calls `end`, outside the critical section. The two
/// may come in any order, so that nothing that happens between the decision and the wait is missed.
package final class Waiter<Outcome: Sendable>: Sendable {
  private enum State {
    case begun
    case suspended(CheckedContinuation<Outcome, Never>)
    case ended(Outcome)
  }

  private let state = Mutex(State.begun)

  /// Begins a wait.
  package init() {}

  /// Ends the wait, unless it has ended.
  package func end(_ outcome: Outcome) {
    let suspended: CheckedContinuation<Outcome, Never>? = state.withLock { state in
      switch state {
      case .begun: state = .ended(outcome)
      case .suspended(let continuation):
        state = .ended(outcome)
        return continuation
      case .ended: break
      }
      return nil
    }
    suspended?.resume(returning: outcome)
  }

  /// Returns the outcome when the wait has ended; call it once.
  package func outcome() async -> Outcome {
    await withCheckedContinuation { continuation in
      let ended: Outcome? = state.withLock { state in
        if case .ended(let outcome) = state { return outcome }
        state = .suspended(continuation)
        return nil
      }
      if let ended { continuation.resume(returning: ended) }
    }
  }
}

extension Array {
  /// Removes and returns the first element that fits; `nil` if none does.
  package mutating func removeFirst(where fits: (Element) -> Bool) -> Element? {
    firstIndex(where: fits).map { remove(at: $0) }
  }
}
