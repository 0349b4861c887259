internal import ImagePipeline
internal import Synchronization
internal import UnixSignals

/// The signals that end a run: after the first no image is begun, the second cancels those in progress.
final class RunStop: Sendable {
  let cancellation = Cancellation()
  private let stopped = Atomic(false)

  /// A signal came before every image was begun.
  var isStopped: Bool { stopped.load(ordering: .acquiring) }

  /// A signal that came when nothing was left to begin has stopped nothing.
  func noteCompletion() {
    if !cancellation.isCancelled { stopped.store(false, ordering: .releasing) }
  }

  /// Watches for signals while `body` runs.
  func watch<Result>(_ body: () async throws -> Result) async throws -> Result {
    try await withThrowingTaskGroup(of: Void.self) { watchers in
      let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
      watchers.addTask { [self] in
        for await _ in signals {
          let isSecond = stopped.exchange(true, ordering: .acquiringAndReleasing)
          if isSecond { cancellation.cancel() }
        }
      }
      defer { watchers.cancelAll() }
      return try await body()
    }
  }
}
