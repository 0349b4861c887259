internal import GRPCCore
internal import GRPCProtobuf
internal import Logging
internal import SwiftProtobuf
internal import Tracing
internal import WorkerProtocol

/// The pipelines from recorded telemetry to the export calls, one for each signal.
extension Telemetry {
  private typealias TraceAnswer = Opentelemetry_Proto_Collector_Trace_V1_ExportTraceServiceResponse

  static func traces(
    _ configuration: TelemetryConfiguration, _ export: TelemetryConfiguration.Export, _ connection: OTLPConnection,
    _ counts: ExportCounts, _ logger: Logger
  ) -> BatchExporter<OTLPSpanBatch> {
    let batching = configuration.spanBatching
    let exporter = OTLPExporter(.traces, export, counts: counts, logger: logger)
    // Serialization cannot fail: the resource contains only strings.
    let resource: [UInt8] = (try? OTLPResource(configuration.resource).serializedBytes()) ?? []
    return BatchExporter(
      queue: BatchQueue(capacity: batching.queueCapacity, batchSize: batching.batchSize, counts: counts),
      delay: batching.delay, flushLimit: flushLimit
    ) { spans in
      let request = OTLPTraceRequest(spans, resource: resource)
      await exporter.send(count: spans.count) { metadata, options in
        let answer = try await connection.client.unary(
          request: ClientRequest(message: request, metadata: metadata),
          descriptor: Opentelemetry_Proto_Collector_Trace_V1_TraceService.Method.Export.descriptor,
          serializer: OTLPTraceSerializer(), deserializer: ProtobufDeserializer<TraceAnswer>(), options: options
        ) { try $0.message }.partialSuccess
        return .init(rejectedCount: answer.rejectedSpans, message: answer.errorMessage)
      }
    }
  }

  static func metrics(
    _ registry: MetricRegistry, _ configuration: TelemetryConfiguration, _ export: TelemetryConfiguration.Export,
    _ connection: OTLPConnection, _ counts: ExportCounts, _ logger: Logger
  ) -> PeriodicExporter {
    let exporter = OTLPExporter(.metrics, export, counts: counts, logger: logger)
    let client = Opentelemetry_Proto_Collector_Metrics_V1_MetricsService.Client(wrapping: connection.client)
    let resource = OTLPResource(configuration.resource)
    let start = DefaultTracerClock.now.nanosecondsSinceEpoch
    return PeriodicExporter(interval: configuration.metricInterval, flushLimit: flushLimit) {
      let families = registry.collect()
      let period = MetricPeriod(start: start, end: DefaultTracerClock.now.nanosecondsSinceEpoch)
      let request = OTLPMetricsRequest(families, period, resource: resource)
      await exporter.send(count: families.reduce(0) { $0 + $1.series.count }) { metadata, options in
        let answer = try await client.export(request, metadata: metadata, options: options).partialSuccess
        return .init(rejectedCount: answer.rejectedDataPoints, message: answer.errorMessage)
      }
    }
  }

  static func logs(
    _ configuration: TelemetryConfiguration, _ export: TelemetryConfiguration.Export, _ connection: OTLPConnection,
    _ counts: ExportCounts, _ logger: Logger
  ) -> BatchExporter<[LogLine]> {
    let batching = configuration.logBatching
    let exporter = OTLPExporter(.logs, export, counts: counts, logger: logger)
    let client = Opentelemetry_Proto_Collector_Logs_V1_LogsService.Client(wrapping: connection.client)
    let resource = OTLPResource(configuration.resource)
    return BatchExporter(
      queue: BatchQueue(capacity: batching.queueCapacity, batchSize: batching.batchSize, counts: counts),
      delay: batching.delay, flushLimit: flushLimit
    ) { lines in
      let request = OTLPLogsRequest(lines, resource: resource)
      await exporter.send(count: lines.count) { metadata, options in
        let answer = try await client.export(request, metadata: metadata, options: options).partialSuccess
        return .init(rejectedCount: answer.rejectedLogRecords, message: answer.errorMessage)
      }
    }
  }
}
