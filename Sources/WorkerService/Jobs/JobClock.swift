package import ImagePipeline

/// When a job began, and how long it waited for admission.
package struct JobClock: Sendable {
  var began = ContinuousClock.now
  var queued = Duration.zero

  package init() {}

  init(began: ContinuousClock.Instant, queued: Duration) {
    self.began = began
    self.queued = queued
  }

  /// The report with the times that only the job knows.
  package func timed(_ report: ProcessingReport) -> ProcessingReport {
    var report = report
    report.timings.queued = queued
    report.timings.total = began.duration(to: .now)
    return report
  }
}
