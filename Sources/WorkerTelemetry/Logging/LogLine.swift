internal import FoundationEssentials
internal import Logging

/// One log record before it is formatted.
struct LogLine: Sendable {
  var time: Date
  var level: Logger.Level
  var label: String
  var message: String
  /// Metadata, sorted by key.
  var metadata: [(key: String, value: Logger.MetadataValue)]
  /// The span that was current when the line was logged.
  var span: SpanContext?

  /// The time in UTC with milliseconds.
  fileprivate var timestamp: String { time.formatted(Self.timestampStyle) }

  // Created once: creating it takes as long as formatting with it.
  private static let timestampStyle = Date.ISO8601FormatStyle(includingFractionalSeconds: true)

  /// The fields that every format shows: the metadata, then the identifiers of the span.
  fileprivate var fields: [(key: String, value: Logger.MetadataValue)] {
    guard let span else { return metadata }
    return metadata + [("trace_id", .string(span.traceID.description)), ("span_id", .string(span.spanID.description))]
  }
}

/// The format of log lines.
package enum LogFormat: String, Sendable, CaseIterable {
  /// One JSON object per line, for machines.
  case json
  /// Text for a person at a terminal.
  case text

  func format(_ line: LogLine) -> String {
    switch self {
    case .json: Self.json(line)
    case .text: Self.text(line)
    }
  }

  private static func text(_ line: LogLine) -> String {
    var text = "\(line.timestamp) "
    text += "\(line.level.rawValue.uppercased().padded(to: 8))\(line.message.singleLine)"
    for (key, value) in line.fields { text += " \(key)=\(plain(value).singleLine)" }
    return text + "\n"
  }

  private static func plain(_ value: Logger.MetadataValue) -> String {
    let text = "\(value)"
    return text.contains(" ") || text.isEmpty ? "\"\(text)\"" : text
  }

  private static func json(_ line: LogLine) -> String {
    var text = "{\"time\":\"\(line.timestamp)\",\"level\":\"\(line.level.rawValue)\""
    text += ",\"logger\":\(line.label.jsonQuoted),\"message\":\(line.message.jsonQuoted)"
    let own: Set = ["time", "level", "logger", "message"]
    for (key, value) in line.fields {
      // Metadata must not replace the record's own keys.
      let isTaken = own.contains(key)
      text += ",\((isTaken ? "metadata.\(key)" : key).jsonQuoted):\(json(value))"
    }
    return text + "}\n"
  }

  private static func json(_ value: Logger.MetadataValue) -> String {
    switch value {
    case .string(let text): text.jsonQuoted
    case .stringConvertible(let value): json(convertible: value)
    case .array(let values): "[\(values.map(json).joined(separator: ","))]"
    case .dictionary(let values):
      "{\(values.sorted { $0.key < $1.key }.map { "\($0.key.jsonQuoted):\(json($0.value))" }.joined(separator: ","))}"
    }
  }

  /// Numbers stay numbers, so that log queries can compare them.
  private static func json(convertible value: any CustomStringConvertible & Sendable) -> String {
    switch value {
    // Check the types that occur in every call first: testing for `any BinaryInteger` is slow.
    case let value as Double: value.isFinite ? "\(value)" : "\(value)".jsonQuoted
    case let value as Bool: "\(value)"
    case let value as any BinaryInteger: "\(value)"
    default: "\(value)".jsonQuoted
    }
  }
}

extension String {
  fileprivate func padded(to count: Int) -> String {
    self + String(repeating: " ", count: max(1, count - self.count))
  }
}
