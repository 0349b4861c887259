internal import FoundationEssentials
internal import WorkerTelemetry

/// JSON as the commands print it.
enum JSONText {
  /// One line without its end; keys in snake case and in a fixed order, and nothing that a terminal would obey.
  static func line(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return escaped(String(decoding: try encoder.encode(value), as: UTF8.self))
  }

  /// The encoder escapes the control characters of ASCII alone.
  private static func escaped(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: \.isControlling) else { return text }
    return text.unicodeScalars.reduce(into: "") { result, scalar in
      if scalar.isControlling {
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      } else {
        result.unicodeScalars.append(scalar)
      }
    }
  }
}
