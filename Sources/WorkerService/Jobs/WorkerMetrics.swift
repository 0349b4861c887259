internal import Admission
internal import CoreMetrics
internal import ImagePipeline

/// The metrics of images and their results.
///
/// `MetricCatalog` in WorkerTelemetry defines and describes the names.
struct WorkerMetrics: Sendable {
  let factory: any MetricsFactory

  /// Records an image with at least one result.
  ///
  /// - `report`: the report of the last result.
  func finished(_ report: ProcessingReport) {
    let (input, timings) = (report.input.format, report.timings)
    answered(after: timings.total)
    count("imageworker.input", by: report.inputByteCount, [("format", input)])
    count("imageworker.input.pixels", by: report.input.size.pixelCount, [("format", input)])
    time("imageworker.queue.wait", timings.queued)
    time("imageworker.stage.duration", timings.decode, [("stage", "decode"), ("format", input)])
    Recorder(label: "imageworker.image.memory", dimensions: [], aggregate: true, factory: factory)
      .record(report.peakMemoryByteCount)
  }

  /// Records a complete result that was produced.
  func made(_ report: ProcessingReport) {
    let (output, timings) = (report.output.format, report.timings)
    count("imageworker.output", by: report.outputByteCount, [("format", output)])
    count("imageworker.output.pixels", by: report.output.size.pixelCount, [("format", output)])
    time("imageworker.stage.duration", timings.resize, [("stage", "resize"), ("format", output)])
    if timings.filter > .zero {
      time("imageworker.stage.duration", timings.filter, [("stage", "filter"), ("format", output)])
    }
    time("imageworker.stage.duration", timings.encode, [("stage", "encode"), ("format", output)])
  }

  /// Records a result from the cache.
  func found(_ report: ProcessingReport) {
    looked(isHit: true)
    count("imageworker.output", by: report.outputByteCount, [("format", report.output.format)])
  }

  /// Records an image that was processed successfully.
  func answered(after duration: Duration) {
    count("imageworker.images", by: 1, [("outcome", "ok")])
    time("imageworker.image.duration", duration)
  }

  /// Records the end of one of several renditions of an image.
  /// - `error`: why the rendition failed; `nil` for success.
  func ended(renditionWith error: (any Error)?) {
    count("imageworker.renditions", by: 1, [("outcome", error.map { FailureReason($0).name } ?? "ok")])
  }

  /// Records the end of a preview.
  /// - `error`: why the preview is missing or incomplete; `nil` for success.
  func ended(previewWith error: PipelineError?) {
    count("imageworker.previews", by: 1, [("outcome", error.map { FailureReason($0).name } ?? "ok")])
  }

  /// Records a cache lookup.
  func looked(isHit: Bool) {
    count("imageworker.cache.requests", by: 1, [("outcome", isHit ? "hit" : "miss")])
  }

  /// Records an image that was refused or that failed.
  /// - `isCancelled`: whether its client had cancelled the call before.
  func failed(_ error: any Error, isCancelled: Bool) {
    let reason = isCancelled ? FailureReason.cancelled : FailureReason(error)
    count("imageworker.images", by: 1, [("outcome", reason.name)])
    if reason == .cancelled { count("imageworker.cancellations", by: 1) }
    if reason.isRefusal { count("imageworker.refusals", by: 1, [("reason", reason.name)]) }
  }

  /// Records the end of a wait.
  @Sendable func waited(_ wait: Wait, _ duration: Duration) {
    time("imageworker.wait.duration", duration, [("wait", wait.name)])
  }

  private func count(_ name: String, by amount: some BinaryInteger, _ dimensions: [(String, String)] = []) {
    Counter(label: name, dimensions: dimensions, factory: factory).increment(by: amount)
  }

  private func time(_ name: String, _ duration: Duration, _ dimensions: [(String, String)] = []) {
    let (seconds, attoseconds) = duration.components
    Timer(label: name, dimensions: dimensions, factory: factory)
      .recordNanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
  }
}
