internal import Synchronization

/// Detects waits for another party that last too long, such as an upload's wait for its next bytes.
///
/// The waiting side begins and ends a wait. Its time does not count while input is on its way, or while the deadline is
/// paused, because the delay is then not caused by the other party. A wait needs no timer and no task of its own.
final class ProgressDeadline<ID: Hashable & Sendable>: Sendable {
  private struct Wait {
    /// The start of the wait, as a reading of the pausable clock; `nil` while nothing waits.
    var since: Duration?
    /// The number of inputs that were supplied and not yet consumed.
    var suppliedCount = 0
    var hasExpired = false
  }

  private struct State {
    var waits: [ID: Wait] = [:]
    /// The time that the clock had run when it was last paused.
    var elapsed = Duration.zero
    var runningSince: ContinuousClock.Instant?

    var now: Duration { elapsed + (runningSince?.duration(to: .now) ?? .zero) }
  }

  /// The maximum duration of a wait; `nil` for no limit.
  let limit: Duration?
  private let state = Mutex(State())

  /// Creates a paused deadline; call `resume` to start its clock.
  init(limit: Duration?) { self.limit = limit }

  // MARK: The clock

  func resume() {
    guard limit != nil else { return }
    state.withLock { if $0.runningSince == nil { $0.runningSince = .now } }
  }

  func pause() {
    guard limit != nil else { return }
    state.withLock { state in
      state.elapsed = state.now
      state.runningSince = nil
    }
  }

  // MARK: Waits

  /// Starts to observe the waits of `id`, until `forget`.
  func observe(_ id: ID) {
    guard limit != nil else { return }
    state.withLock { $0.waits[id] = Wait() }
  }

  func forget(_ id: ID) {
    guard limit != nil else { return }
    state.withLock { _ = $0.waits.removeValue(forKey: id) }
  }

  func beginWait(of id: ID) {
    guard limit != nil else { return }
    state.withLock { state in
      let now = state.now
      state.waits[id]?.since = now
    }
  }

  /// Ends a wait.
  ///
  /// - `tookSupply`: whether the wait ended because supplied input was consumed.
  func endWait(of id: ID, tookSupply: Bool) {
    guard limit != nil else { return }
    state.withLock { state in
      state.waits[id]?.since = nil
      if tookSupply { state.waits[id]?.suppliedCount -= 1 }
    }
  }

  /// Records that input for `id` is on its way; its wait does not expire before the input was consumed.
  func supply(_ id: ID) {
    guard limit != nil else { return }
    state.withLock { $0.waits[id]?.suppliedCount += 1 }
  }

  // MARK: Expiry

  /// Whether `takeExpired` has returned `id`.
  func hasExpired(_ id: ID) -> Bool { state.withLock { $0.waits[id]?.hasExpired ?? false } }

  /// Returns the ids whose wait has exceeded the limit, each once.
  func takeExpired() -> [ID] {
    guard let limit else { return [] }
    return state.withLock { state in
      let now = state.now
      let expired = state.waits.filter { _, wait in
        guard let since = wait.since, wait.suppliedCount == 0, !wait.hasExpired else { return false }
        return now - since >= limit
      }
      for id in expired.keys { state.waits[id]?.hasExpired = true }
      return Array(expired.keys)
    }
  }

  /// Calls `body` with each id whose wait has exceeded the limit, until the task is cancelled.
  ///
  /// It checks four times per limit, so that a wait exceeds the limit by at most a quarter.
  func watch(_ body: (ID) -> Void) async {
    guard let limit else { return }
    while (try? await Task.sleep(for: limit / 4)) != nil {
      for id in takeExpired() { body(id) }
    }
  }
}
