package import Logging
package import WorkThreads

/// Makes health checks fail while an image thread is stuck in one piece of work.
///
/// An example is a call into a library that cannot be cancelled.
package struct StuckThreadWatch: Sendable {
  private let executors: [ImageExecutor]
  private let limit: Duration
  private let health: HealthState
  private let logger: Logger

  /// Creates a watch.
  ///
  /// - Parameters:
  ///   - executors: The executors whose threads are watched.
  ///   - limit: The time after which a thread that has not returned counts as stuck.
  ///   - health: The state that reports the worker as stuck.
  ///   - logger: The logger for threads that get stuck or recover.
  package init(executors: [ImageExecutor], limit: Duration, health: HealthState, logger: Logger) {
    self.executors = executors
    self.limit = limit
    self.health = health
    self.logger = logger
  }

  /// Checks the threads four times per limit until the task is cancelled.
  package func run() async {
    var reported: Set<StuckWork.ID> = []
    while (try? await Task.sleep(for: limit / 4)) != nil {
      let stuck = executors.flatMap { $0.stuckWork(longerThan: limit) }
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
