internal import CoreMetrics
internal import ImagePipeline

/// What images are measured by.
///
/// Names are those of `MetricCatalog` in WorkerTelemetry, which describes them.
struct WorkerMetrics: Sendable {
  let factory: any MetricsFactory

  /// An image that is done, of which there is at least one result: that of `report`, the last.
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

  /// A result that is complete.
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

  /// A result that was kept from before.
  func found(_ report: ProcessingReport) {
    looked(isHit: true)
    count("imageworker.output", by: report.outputByteCount, [("format", report.output.format)])
  }

  /// An image that is done.
  func answered(after duration: Duration) {
    count("imageworker.images", by: 1, [("outcome", "ok")])
    time("imageworker.image.duration", duration)
  }

  /// One of several renditions of an image that has ended.
  /// - `error`: why it is not there; `nil` when it is.
  func ended(renditionWith error: (any Error)?) {
    count("imageworker.renditions", by: 1, [("outcome", error.map { FailureReason($0).name } ?? "ok")])
  }

  /// A preview that has ended.
  /// - `error`: why it is not there, or not whole; `nil` when it is.
  func ended(previewWith error: PipelineError?) {
    count("imageworker.previews", by: 1, [("outcome", error.map { FailureReason($0).name } ?? "ok")])
  }

  /// A look for a result in the cache.
  func looked(isHit: Bool) {
    count("imageworker.cache.requests", by: 1, [("outcome", isHit ? "hit" : "miss")])
  }

  /// An image that was refused or given up.
  /// - `isCancelled`: whether its caller had left before.
  func failed(_ error: any Error, isCancelled: Bool) {
    let reason = isCancelled ? FailureReason.cancelled : FailureReason(error)
    count("imageworker.images", by: 1, [("outcome", reason.name)])
    if reason == .cancelled { count("imageworker.cancellations", by: 1) }
    if reason.isRefusal { count("imageworker.refusals", by: 1, [("reason", reason.name)]) }
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
