internal import Synchronization

/// Ends a call that makes no progress; the time counts while the client waits for the worker.
final class StallWatch: Sendable {
  private let limit: Duration
  /// The last progress; `nil` while the client does not wait.
  private let waitingSince = Mutex<ContinuousClock.Instant?>(nil)

  private init(limit: Duration) { self.limit = limit }

  /// Runs a call.
  /// - Throws: what `call` throws, or an error if it made no progress for `limit`.
  static func run(limit: Duration, _ call: @escaping @Sendable (StallWatch) async throws -> Void) async throws {
    let watch = StallWatch(limit: limit)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await call(watch) }
      group.addTask { try await watch.waitForStall() }
      defer { group.cancelAll() }
      try await group.next()
    }
  }

  /// Starts to wait.
  func start() { waitingSince.withLock { $0 = .now } }

  /// Ends to wait.
  func stop() { waitingSince.withLock { $0 = nil } }

  /// There was progress, such as bytes that the worker took.
  func note() { waitingSince.withLock { if $0 != nil { $0 = .now } } }

  private func waitForStall() async throws {
    while true {
      let end = (waitingSince.withLock { $0 } ?? .now) + limit
      if end <= .now { throw ImageWorkerError.lost("the call made no progress for \(limit)") }
      try await Task.sleep(until: end, clock: .continuous)
    }
  }
}
