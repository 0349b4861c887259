internal import Logging
internal import ServiceLifecycle
internal import WorkerService

/// Replaces the process that starts helpers when it is stopped or has ended, before an image needs it.
struct ZygoteService: Service {
  let helpers: HelperPool
  let logger: Logger

  private static let interval = Duration.seconds(1)

  /// Checks once per interval until the process shuts down.
  func run() async throws {
    try? await cancelWhenGracefulShutdown {
      while true {
        try await Task.sleep(for: Self.interval)
        if helpers.replaceLostZygote() {
          logger.warning("the process that starts helpers was stopped or has ended, and was replaced")
        }
      }
    }
  }
}
