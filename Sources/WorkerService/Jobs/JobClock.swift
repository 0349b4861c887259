internal import ImagePipeline

/// When a job began, and how long it waited for admission.
struct JobClock: Sendable {
  var began = ContinuousClock.now
  var queued = Duration.zero

  /// The report with the times that only the job knows.
  func timed(_ report: ProcessingReport) -> ProcessingReport {
    var report = report
    report.timings.queued = queued
    report.timings.total = began.duration(to: .now)
    return report
  }
}
