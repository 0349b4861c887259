internal import ServiceLifecycle
internal import WorkerService

/// Returns free memory to the system when the worker has become idle.
struct IdleMemoryService: Service {
  /// The calls to watch.
  let drain: DrainState

  /// How long no call must have been served.
  private static let idlePeriod = Duration.seconds(2)

  /// Checks once per period until the process shuts down.
  ///
  /// A worker that stays idle is trimmed once.
  func run() async throws {
    try? await cancelWhenGracefulShutdown { [drain] in
      var trimmedCount: UInt64 = 0
      var lastCount: UInt64 = 0
      while true {
        try await Task.sleep(for: Self.idlePeriod)
        let count = drain.startedCount
        if count == lastCount, count != trimmedCount, drain.workCount == 0 {
          Allocator.trim()
          trimmedCount = count
        }
        lastCount = count
      }
    }
  }
}
