internal import Synchronization

/// Finds who has waited too long for somebody else: an upload for its next bytes, say.
///
/// A wait is begun and ended by who waits. It does not count while something is on its way to them, or while the deadline
/// is paused, because then it is not the other side that is slow. Waits cost no timer and no task of their own.
final class ProgressDeadline<ID: Hashable & Sendable>: Sendable {
  private struct Wait {
    /// The beginning, on the clock that pauses; `nil` while nobody waits.
    var since: Duration?
    /// What was supplied and not taken yet.
    var suppliedCount = 0
    var hasExpired = false
  }

  private struct State {
    var waits: [ID: Wait] = [:]
    /// How long the clock ran before it was last paused.
    var elapsed = Duration.zero
    var runningSince: ContinuousClock.Instant?

    var now: Duration { elapsed + (runningSince?.duration(to: .now) ?? .zero) }
  }

  /// The maximum duration of a wait; `nil` for any.
  let limit: Duration?
  private let state = Mutex(State())

  /// Paused, until `resume`.
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

  /// Observes the waits of one more, until `forget`.
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

  /// - `tookSupply`: whether the wait ended with something that was supplied.
  func endWait(of id: ID, tookSupply: Bool) {
    guard limit != nil else { return }
    state.withLock { state in
      state.waits[id]?.since = nil
      if tookSupply { state.waits[id]?.suppliedCount -= 1 }
    }
  }

  /// Something is on its way to `id`, whose wait does not expire before that was taken.
  func supply(_ id: ID) {
    guard limit != nil else { return }
    state.withLock { $0.waits[id]?.suppliedCount += 1 }
  }

  // MARK: Expiry

  /// Whether `takeExpired` returned `id`.
  func hasExpired(_ id: ID) -> Bool { state.withLock { $0.waits[id]?.hasExpired ?? false } }

  /// Returns those whose wait has lasted too long, each once.
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

  /// Calls `body` with each whose wait has lasted too long, until the task is cancelled.
  ///
  /// It looks four times within the limit, so that a wait lasts at most a quarter longer.
  func watch(_ body: (ID) -> Void) async {
    guard let limit else { return }
    while (try? await Task.sleep(for: limit / 4)) != nil {
      for id in takeExpired() { body(id) }
    }
  }
}
