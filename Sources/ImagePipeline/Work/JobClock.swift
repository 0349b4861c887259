/// The start time of a job, how long it waited for admission, and its work.
package struct JobClock: Sendable {
  /// The start of the job.
  package var began = ContinuousClock.now
  /// The time that the job waited for a thread and for memory.
  package var queued = Duration.zero
  /// The time that image threads spent on the job's windows.
  package var worked = Duration.zero
  /// The CPU time of that work, in this process and in a helper: what an image costs on a busy machine, too.
  package var cpuTime = Duration.zero

  /// Starts the clock now.
  package init() {}

  package init(began: ContinuousClock.Instant, queued: Duration) {
    self.began = began
    self.queued = queued
  }

  /// Returns the report with the queue time and the total time of the job.
  package func timed(_ report: ProcessingReport) -> ProcessingReport {
    var report = report
    report.timings.queued = queued
    report.timings.total = began.duration(to: .now)
    return report
  }
}
