internal import CoreMetrics
internal import GRPCCore
internal import GRPCProtobuf
internal import ImagePipeline
internal import WorkerProtocol

/// What pictures are measured by.
///
/// Names are those of `MetricCatalog` in WorkerOperations, which describes them.
struct WorkerMetrics: Sendable {
  let factory: any MetricsFactory

  /// A picture whose result is complete.
  func finished(_ report: ProcessingReport) {
    let (input, output) = (report.input.format, report.output.format)
    count("imageworker.pictures", by: 1, [("outcome", "ok")])
    count("imageworker.input", by: report.inputByteCount, [("format", input)])
    count("imageworker.output", by: report.outputByteCount, [("format", output)])
    count("imageworker.input.pixels", by: report.input.size.pixelCount, [("format", input)])
    count("imageworker.output.pixels", by: report.output.size.pixelCount, [("format", output)])
    let timings = report.timings
    time("imageworker.picture.duration", timings.total)
    time("imageworker.queue.wait", timings.queued)
    time("imageworker.stage.duration", timings.decode, [("stage", "decode"), ("format", input)])
    time("imageworker.stage.duration", timings.resize, [("stage", "resize"), ("format", output)])
    if timings.filter > .zero {
      time("imageworker.stage.duration", timings.filter, [("stage", "filter"), ("format", output)])
    }
    time("imageworker.stage.duration", timings.encode, [("stage", "encode"), ("format", output)])
    Recorder(label: "imageworker.picture.memory", dimensions: [], aggregate: true, factory: factory)
      .record(report.peakMemoryByteCount)
  }

  /// A picture whose result was kept from before.
  func found(_ report: Imageworker_V1_ProcessingReport, after duration: Duration) {
    looked(isHit: true)
    count("imageworker.pictures", by: 1, [("outcome", "ok")])
    count("imageworker.output", by: report.outputBytes, [("format", report.output.format)])
    time("imageworker.picture.duration", duration)
  }

  /// A look for a result in the cache.
  func looked(isHit: Bool) {
    count("imageworker.cache.requests", by: 1, [("outcome", isHit ? "hit" : "miss")])
  }

  /// A picture that was refused or given up.
  /// - `isCancelled`: whether its caller had left before.
  func failed(_ error: any Error, isCancelled: Bool) {
    let reason = isCancelled ? Reason.cancelled : Reason(error)
    count("imageworker.pictures", by: 1, [("outcome", reason.name)])
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

  /// Why there is no result, of few possible values.
  private struct Reason: Equatable {
    var name: String
    /// Whether the picture was turned away before any of it was decoded.
    var isRefusal: Bool

    static let cancelled = Reason(name: "cancelled", isRefusal: false)

    private init(name: String, isRefusal: Bool) {
      self.name = name
      self.isRefusal = isRefusal
    }

    init(_ error: any Error) {
      switch error {
      case let error as PipelineError: self.init(error.code)
      case let error as GoogleRPCStatus where error.code == .unavailable: self.init(name: "draining", isRefusal: true)
      case is CancellationError: self = .cancelled
      // What the transport throws when it can't write: nobody is there any more.
      case is RPCError: self = .cancelled
      default: self.init(name: "internal_defect", isRefusal: false)
      }
    }

    private init(_ code: PipelineError.Code) {
      let isRefusal =
        switch code {
        case .invalidField, .unservedField, .unknownPreset, .emptyImage, .unknownFormat, .unsupportedImage,
          .limitExceeded, .overloaded:
          true
        case .corruptImage, .truncatedImage, .cancelled, .internalDefect: false
        }
      self.init(name: code.rawValue.lowercased(), isRefusal: isRefusal)
    }
  }
}
