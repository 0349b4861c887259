package import Logging
package import WorkThreads

/// Lets health checks fail while an image thread is stuck in one piece of work, such as a call of a library that cannot be
/// cancelled.
package struct StuckThreadWatch: Sendable {
  private let executor: ImageExecutor
  private let limit: Duration
  private let health: HealthState
  private let logger: Logger

  /// - `limit`: from when on a thread that has not returned is stuck.
  package init(executor: ImageExecutor, limit: Duration, health: HealthState, logger: Logger) {
    self.executor = executor
    self.limit = limit
    self.health = health
    self.logger = logger
  }

  /// Looks four times within the limit, until the task is cancelled.
  package func run() async {
    var reported: Set<StuckWork.ID> = []
    while (try? await Task.sleep(for: limit / 4)) != nil {
      let stuck = executor.stuckWork(longerThan: limit)
      health.setStuck(!stuck.isEmpty)
      for work in stuck where !reported.contains(work.id) {
        logger.error(
          "an image thread is stuck; not serving until it returns",
          metadata: ["format": "\(work.subject)", "seconds": "\(work.duration.components.seconds)"])
      }
      if stuck.isEmpty, !reported.isEmpty { logger.notice("all image threads respond again") }
      reported = Set(stuck.map(\.id))
    }
  }
}
