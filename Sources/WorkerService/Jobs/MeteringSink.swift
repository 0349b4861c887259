internal import ImagePipeline

/// Records the metrics of results while forwarding them, and those of the image when its last result has ended.
final class MeteringSink: ResultSink {
  private let next: any ResultSink
  private let metrics: WorkerMetrics
  private var renditionsLeft: Int
  /// The report of the last rendition that was produced.
  private var report: ProcessingReport?
  /// The error of the first rendition that failed.
  private var error: (any Error)?

  /// Creates a sink that forwards to `next`.
  ///
  /// - `renditionCount`: the number of the image's results.
  init(_ next: any ResultSink, renditionCount: Int, metrics: WorkerMetrics) {
    self.next = next
    self.metrics = metrics
    renditionsLeft = renditionCount
  }

  func send(_ part: ResultPart) async throws {
    measure(part)
    try await next.send(part)
  }

  private func measure(_ part: ResultPart) {
    switch part.content {
    case .header, .chunk: return
    case .report(let report) where report.isCacheHit:
      metrics.found(report.processing)
      end(part.rendition, nil)
      if renditionsLeft == 0, self.report == nil, error == nil {
        metrics.answered(after: report.processing.timings.total)
      }
      return
    case .report(let report):
      self.report = report.processing
      metrics.made(report.processing)
      end(part.rendition, nil)
    case .failure(let error):
      self.error = self.error ?? error
      end(part.rendition, error)
    }
    guard renditionsLeft == 0 else { return }
    if let report { metrics.finished(report) } else if let error { metrics.failed(error, isCancelled: false) }
  }

  private func end(_ rendition: Rendition, _ error: (any Error)?) {
    renditionsLeft -= 1
    if rendition.index != nil { metrics.ended(renditionWith: error) }
  }
}
