internal import Dispatch
internal import ServiceLifecycle
internal import Synchronization
internal import UnixSignals

/// Reads files again at each SIGHUP, and at an interval if there is one.
///
/// A file system that does not answer costs a thread of its own and later reloads, but no other task and no shutdown.
final class Reloader: Service {
  private let interval: Duration?
  private let reload: @Sendable () -> Void
  private let signals: UnixSignalsSequence
  private let queue = DispatchQueue(label: "reload")
  /// Whether a reload waits for its turn, which comes after all changes until then.
  private let isRequested = Atomic(false)

  /// Signals are received from here on, before anybody can know that they are.
  init(every interval: Duration? = nil, _ reload: @escaping @Sendable () -> Void) async {
    self.interval = interval
    self.reload = reload
    signals = await UnixSignalsSequence(trapping: .sighup)
  }

  func run() async throws {
    try await withThrowingDiscardingTaskGroup { group in
      group.addTask { [self] in
        for await _ in signals.cancelOnGracefulShutdown() { request() }
      }
      guard let interval else { return }
      group.addTask { [self] in
        _ = try? await cancelWhenGracefulShutdown { [self] in
          while !Task.isCancelled {
            try await Task.sleep(for: interval)
            request()
          }
        }
      }
    }
  }

  /// Reads the files again, after a reload that has begun; does not wait for it.
  func request() {
    guard !isRequested.exchange(true, ordering: .acquiringAndReleasing) else { return }
    queue.async { [self] in
      _ = isRequested.exchange(false, ordering: .acquiringAndReleasing)
      reload()
    }
  }
}
