internal import Synchronization

/// Detects waits for another party that last too long, such as an upload's wait for its next bytes.
///
/// With a minimum rate, the waits of an upload add up, and each byte that arrives makes up for a part of them. A client
/// that sends one byte in time does not start anew.
///
/// The waiting side begins and ends a wait. Its time does not count while input is on its way, or while the deadline is
/// paused, because the delay is then not caused by the other party. A wait needs no timer and no task of its own.
package final class ProgressDeadline: Sendable {
  private struct Wait {
    /// The start of the wait, as a reading of the pausable clock; `nil` while nothing waits.
    var since: Duration?
    /// The duration of earlier waits that no bytes have made up for.
    var lag = Duration.zero
    /// The number of inputs that were supplied and not yet consumed.
    var suppliedCount = 0
    var hasExpired = false
  }

  private struct State {
    /// By the bytes of ids, of which two are equal as texts if they differ in normalization only.
    var waits: [[UInt8]: Wait] = [:]
    /// The time that the clock had run when it was last paused.
    var elapsed = Duration.zero
    var runningSince: ContinuousClock.Instant?

    var now: Duration { elapsed + (runningSince?.duration(to: .now) ?? .zero) }
  }

  /// The maximum duration of a wait; `nil` for no limit.
  package let limit: Duration?
  private let state = Mutex(State())

  /// The number of bytes that make up for a second of waiting; 0 if any byte makes up for all of it.
  package let minBytesPerSecond: Int

  /// Creates a paused deadline; call `resume` to start its clock.
  package init(limit: Duration?, minBytesPerSecond: Int = 0) {
    self.limit = limit
    self.minBytesPerSecond = minBytesPerSecond
  }

  // MARK: The clock

  /// Starts the clock.
  package func resume() {
    guard limit != nil else { return }
    state.withLock { if $0.runningSince == nil { $0.runningSince = .now } }
  }

  /// Stops the clock; no wait gets longer until it is started again.
  package func pause() {
    guard limit != nil else { return }
    state.withLock { state in
      state.elapsed = state.now
      state.runningSince = nil
    }
  }

  // MARK: Waits

  /// Starts to observe the waits of `id`, until `forget`.
  package func observe(_ id: String) {
    guard limit != nil else { return }
    state.withLock { $0.waits[Array(id.utf8)] = Wait() }
  }

  /// Ends the observation of `id`.
  package func forget(_ id: String) {
    guard limit != nil else { return }
    state.withLock { _ = $0.waits.removeValue(forKey: Array(id.utf8)) }
  }

  /// Begins a wait.
  package func beginWait(of id: String) {
    guard limit != nil else { return }
    state.withLock { state in
      let now = state.now
      state.waits[Array(id.utf8)]?.since = now
    }
  }

  /// Ends a wait.
  ///
  /// - `tookSupply`: whether the wait ended because supplied input was consumed.
  package func endWait(of id: String, tookSupply: Bool) {
    guard limit != nil else { return }
    state.withLock { state in
      let now = state.now
      guard var wait = state.waits[Array(id.utf8)] else { return }
      if minBytesPerSecond > 0, let since = wait.since { wait.lag += now - since }
      wait.since = nil
      if tookSupply { wait.suppliedCount -= 1 }
      state.waits[Array(id.utf8)] = wait
    }
  }

  /// Records that input for `id` is on its way; its wait does not expire before the input was consumed.
  package func supply(_ id: String, byteCount: Int) {
    guard limit != nil else { return }
    let seconds = minBytesPerSecond > 0 ? Double(byteCount) / Double(minBytesPerSecond) : 0
    state.withLock { state in
      let now = state.now
      guard var wait = state.waits[Array(id.utf8)] else { return }
      if let since = wait.since, minBytesPerSecond > 0 {
        wait.lag += now - since
        wait.since = now
      }
      wait.lag = max(.zero, wait.lag - .seconds(seconds))
      wait.suppliedCount += 1
      state.waits[Array(id.utf8)] = wait
    }
  }

  // MARK: Expiry

  /// Whether `takeExpired` has returned `id`.
  package func hasExpired(_ id: String) -> Bool { state.withLock { $0.waits[Array(id.utf8)]?.hasExpired ?? false } }

  /// Returns the ids whose wait, or whose waits together, have exceeded the limit, each once.
  package func takeExpired() -> [String] {
    guard let limit else { return [] }
    return state.withLock { state in
      let now = state.now
      let expired = state.waits.filter { _, wait in
        guard let since = wait.since, wait.suppliedCount == 0, !wait.hasExpired else { return false }
        return wait.lag + (now - since) >= limit
      }
      for id in expired.keys { state.waits[id]?.hasExpired = true }
      return expired.keys.map { String(decoding: $0, as: UTF8.self) }
    }
  }

  /// Calls `body` with each id whose wait has exceeded the limit, until the task is cancelled.
  ///
  /// It checks four times per limit, so that a wait exceeds the limit by at most a quarter.
  package func watch(_ body: (String) -> Void) async {
    guard let limit else { return }
    while (try? await Task.sleep(for: limit / 4)) != nil {
      for id in takeExpired() { body(id) }
    }
  }
}
