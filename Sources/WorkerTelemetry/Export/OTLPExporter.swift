internal import GRPCCore
internal import Logging
internal import Synchronization

/// Sends batches of one signal to its collector, and logs when exports start to fail and when they recover.
final class OTLPExporter: Sendable {
  /// The collector's response to a batch that it accepted.
  struct Answer: Sendable {
    /// The number of elements that the collector claims to have rejected; any number.
    var rejectedCount: Int64
    var message: String
  }

  private let signal: TelemetryConfiguration.Signal
  private let export: TelemetryConfiguration.Export
  private let metadata: Metadata
  private let counts: ExportCounts
  private let logger: Logger
  private let retry: OTLPRetry
  private let isFailing = Mutex(false)
  /// The collector's last message about an accepted batch; a repeated message is logged once.
  private let lastAnswer = Mutex("")

  init(
    _ signal: TelemetryConfiguration.Signal, _ export: TelemetryConfiguration.Export, counts: ExportCounts,
    logger: Logger, retry: OTLPRetry = OTLPRetry()
  ) {
    self.signal = signal
    self.export = export
    self.counts = counts
    self.logger = logger
    self.retry = retry
    var metadata = Metadata()
    for header in export.headers { metadata.addString(header.value, forKey: header.key) }
    self.metadata = metadata
  }

  /// Sends one batch; returns when the collector has accepted it, or when it was counted as dropped.
  ///
  /// - Parameters:
  ///   - count: The number of elements in the batch.
  ///   - call: The export call; it may run several times.
  func send(count: Int, _ call: (Metadata, CallOptions) async throws -> Answer) async {
    do {
      let answer = try await retry.run(timeout: export.timeout) { timeLeft in
        var options = CallOptions.defaults
        options.timeout = timeLeft
        options.waitForReady = false
        return try await call(metadata, options)
      }
      let rejectedCount = Int(min(max(0, answer.rejectedCount), Int64(count)))
      counts.export(count - rejectedCount)
      counts.drop(rejectedCount, because: .rejected)
      note(answer)
    } catch {
      let isShutdown = error is CancellationError || Task.isCancelled
      counts.drop(count, because: isShutdown ? .shutdown : .exportFailed)
      if !isShutdown { note(error) }
    }
  }

  private func note(_ answer: Answer) {
    let isNew = lastAnswer.withLock { last in
      defer { last = answer.message }
      return last != answer.message
    }
    if isNew, !answer.message.isEmpty {
      logger.warning(
        "the collector accepted telemetry with a warning",
        metadata: description.merging(
          ["rejected": "\(answer.rejectedCount)", "answer": "\(answer.message.prefix(256))"]) { $1 })
    }
    guard change(isFailing: false) else { return }
    logger.notice("the collector accepts telemetry again", metadata: description)
  }

  private func note(_ error: any Error) {
    guard change(isFailing: true) else { return }
    let reason = (error as? RPCError).map { "\($0.code): \($0.message.prefix(256))" } ?? "\(error)"
    logger.warning(
      "the collector does not accept telemetry; it is dropped until it does",
      metadata: description.merging(["error": "\(reason)"]) { $1 })
  }

  private func change(isFailing new: Bool) -> Bool {
    isFailing.withLock { isFailing in
      defer { isFailing = new }
      return isFailing != new
    }
  }

  private var description: Logger.Metadata {
    ["signal": "\(signal.rawValue)", "collector": "\(export.endpoint.host):\(export.endpoint.port)"]
  }
}
