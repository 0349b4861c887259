internal import Synchronization

/// Knows when the last part of a stream arrived.
final class Arrivals: Sendable {
  private let last = Mutex(ContinuousClock.now)

  /// Records that a part has arrived.
  func note() { last.withLock { $0 = .now } }

  /// Waits until nothing has arrived for a time.
  ///
  /// - Parameters:
  ///   - quietTime: The time without parts.
  ///   - limit: The maximum time to wait.
  func pause(of quietTime: Duration, limit: Duration) async {
    let end = ContinuousClock.now + limit
    note()
    while true {
      let next = min(last.withLock { $0 } + quietTime, end)
      guard next > .now, (try? await Task.sleep(until: next, clock: .continuous)) != nil else { return }
    }
  }
}
