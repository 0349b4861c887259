internal import FoundationEssentials
internal import Logging
internal import SwiftProtobuf
internal import WorkerProtocol

typealias OTLPLog = Opentelemetry_Proto_Logs_V1_LogRecord
typealias OTLPLogsRequest = Opentelemetry_Proto_Collector_Logs_V1_ExportLogsServiceRequest

extension OTLPLogsRequest {
  init(_ lines: [LogLine], resource: OTLPResource) {
    self.init()
    resourceLogs = [
      .with { all in
        all.resource = resource
        all.schemaURL = SemanticConventions.schemaURL
        all.scopeLogs = [
          .with { scope in
            scope.scope = .worker
            scope.schemaURL = SemanticConventions.schemaURL
            scope.logRecords = lines.map(OTLPLog.init)
          }
        ]
      }
    ]
  }
}

extension OTLPLog {
  init(_ line: LogLine) {
    self.init()
    timeUnixNano = UInt64(max(0, line.time.timeIntervalSince1970 * 1e9))
    observedTimeUnixNano = timeUnixNano
    severityNumber = Self.severity(line.level)
    severityText = line.level.rawValue
    body = OTLPValue(line.message)
    attributes = line.metadata.map { OTLPKeyValue($0.key, OTLPValue($0.value)) }
    if let span = line.span {
      traceID = span.traceID.bytes
      spanID = span.spanID.bytes
      flags = UInt32(span.flags.rawValue)
    }
  }

  private static func severity(_ level: Logger.Level) -> Opentelemetry_Proto_Logs_V1_SeverityNumber {
    switch level {
    case .trace: .trace
    case .debug: .debug
    case .info: .info
    case .notice: .info2
    case .warning: .warn
    case .error: .error
    case .critical: .fatal
    }
  }
}

extension OTLPValue {
  fileprivate init(_ value: Logger.MetadataValue) {
    self.init()
    switch value {
    case .string(let text): stringValue = text
    case .stringConvertible(let value as Int): intValue = Int64(value)
    case .stringConvertible(let value as Double): doubleValue = value
    case .stringConvertible(let value as Bool): boolValue = value
    case .stringConvertible(let value): stringValue = "\(value)"
    case .array(let values): arrayValue.values = values.map(OTLPValue.init)
    case .dictionary(let values): kvlistValue.values = values.map { OTLPKeyValue($0.key, OTLPValue($0.value)) }
    }
  }
}
