package import Logging
internal import ServiceLifecycle

/// The worker's telemetry as a service: it records traces, metrics and logs and exports them to collectors.
///
/// Recording never waits. Telemetry that a collector does not accept in time is dropped and counted.
package final class Telemetry: Service {
  /// Time limit for the last flush when the worker stops.
  static let flushLimit = Duration.seconds(5)

  /// Tracer for calls and images; it only propagates contexts if traces are not exported.
  package let tracer: RecordingTracer
  /// Export for log records; `nil` if logs are not exported.
  package let log: LogExport?
  /// Numbers of exported and dropped elements for each exported signal.
  package let counts: [TelemetryConfiguration.Signal: ExportCounts]
  private let logger: Logger
  private let connections: [OTLPConnection]
  private let exports: [BackgroundExport]

  /// Sets up the exports; a signal whose connection cannot be set up is skipped with a warning.
  ///
  /// - Parameters:
  ///   - configuration: The settings from the environment.
  ///   - metrics: The metrics to export.
  ///   - logger: The logger for warnings, for example about a collector that cannot be reached. It must not export to
  ///     that collector.
  package init(configuration: TelemetryConfiguration, metrics: MetricRegistry, logger: Logger) {
    for warning in configuration.warnings { logger.warning("\(warning)") }
    var connections = Connections()
    var exports: [BackgroundExport] = []
    var sink: (@Sendable (FinishedSpan) -> Void)?
    if let (export, connection, count) = connections.begin(.traces, configuration, logger) {
      let pipeline = Self.traces(configuration, export, connection, count, logger)
      // Serialize on the thread that ends the span: its storage is then freed where it was allocated, without
      // contention.
      sink = { [queue = pipeline.queue] in queue.offer(OTLPSpan($0)) }
      exports.append(BackgroundExport(run: pipeline.run, close: pipeline.queue.close))
    }
    if let (export, connection, count) = connections.begin(.metrics, configuration, logger) {
      let periodic = Self.metrics(metrics, configuration, export, connection, count, logger)
      exports.append(BackgroundExport(run: periodic.run, close: periodic.close))
    }
    if let (export, connection, count) = connections.begin(.logs, configuration, logger) {
      let pipeline = Self.logs(configuration, export, connection, count, logger)
      log = LogExport(take: pipeline.queue.offer)
      exports.append(BackgroundExport(run: pipeline.run, close: pipeline.queue.close))
    } else {
      log = nil
    }
    tracer = RecordingTracer(
      sampler: configuration.sampler, readsTraceContext: configuration.readsTraceContext, sink: sink)
    counts = connections.counts
    self.logger = logger
    self.connections = Array(connections.all.values)
    self.exports = exports
  }

  /// Exports until a graceful shutdown, then flushes the rest within a time limit.
  package func run() async throws {
    await withTaskGroup(of: Void.self) { group in
      for connection in connections { group.addTask { await connection.run() } }
      await withGracefulShutdownHandler {
        await withTaskGroup(of: Void.self) { running in
          for export in exports { running.addTask { await export.run() } }
          running.addTask { try? await gracefulShutdown() }
        }
      } onGracefulShutdown: {
        for export in self.exports { export.close() }
      }
      for connection in connections { connection.close() }
      group.cancelAll()
    }
    for (signal, count) in counts where !count.dropped.isEmpty {
      logger.warning(
        "telemetry was dropped",
        metadata: ["signal": "\(signal)", "dropped": "\(count.dropped.values.reduce(0, +))"])
    }
  }
}

/// A background task that runs while the worker serves and ends some time after it is closed.
struct BackgroundExport: Sendable {
  var run: @Sendable () async -> Void
  var close: @Sendable () -> Void
}

/// Connections by endpoint; signals with the same collector share one.
private struct Connections {
  private(set) var all: [OTLPEndpoint: OTLPConnection] = [:]
  private(set) var counts: [TelemetryConfiguration.Signal: ExportCounts] = [:]

  /// Returns what the export of a signal needs; `nil` if it is not exported.
  mutating func begin(
    _ signal: TelemetryConfiguration.Signal, _ configuration: TelemetryConfiguration, _ logger: Logger
  ) -> (TelemetryConfiguration.Export, OTLPConnection, ExportCounts)? {
    guard let export = configuration.exports[signal],
      let connection = connection(to: export.endpoint, for: signal, logger)
    else { return nil }
    let count = ExportCounts()
    counts[signal] = count
    return (export, connection, count)
  }

  /// Returns the connection to an endpoint; `nil`, after a warning, if it cannot be set up.
  private mutating func connection(
    to endpoint: OTLPEndpoint, for signal: TelemetryConfiguration.Signal, _ logger: Logger
  ) -> OTLPConnection? {
    if let connection = all[endpoint] { return connection }
    do {
      let connection = try OTLPConnection(endpoint)
      all[endpoint] = connection
      return connection
    } catch {
      logger.warning(
        "\(signal.rawValue) are not exported: the connection cannot be set up", metadata: ["error": "\(error)"])
      return nil
    }
  }
}
