internal import FoundationEssentials

/// JSON as the commands print it.
enum JSONText {
  /// One line without its end; keys in snake case and in a fixed order.
  static func line(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(value), as: UTF8.self)
  }
}
