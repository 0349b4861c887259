internal import ServiceLifecycle
internal import UnixSignals

/// Reads files again at each SIGHUP, and at an interval if there is one.
struct Reloader: Service {
  private let interval: Duration?
  private let reload: @Sendable () -> Void
  private let signals: UnixSignalsSequence

  /// Signals are received from here on, before anybody can know that they are.
  init(every interval: Duration? = nil, _ reload: @escaping @Sendable () -> Void) async {
    self.interval = interval
    self.reload = reload
    signals = await UnixSignalsSequence(trapping: .sighup)
  }

  func run() async throws {
    try await withThrowingDiscardingTaskGroup { group in
      group.addTask {
        for await _ in signals.cancelOnGracefulShutdown() { reload() }
      }
      guard let interval else { return }
      group.addTask {
        _ = try? await cancelWhenGracefulShutdown {
          while !Task.isCancelled {
            try await Task.sleep(for: interval)
            reload()
          }
        }
      }
    }
  }
}
