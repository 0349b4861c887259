/// The untyped value of a field.
package enum FieldValue: Sendable, Hashable {
  case flag(Bool)
  case integer(UInt64)
  case number(Double)
  /// Text, or the name of a choice as in the contract: lower case, with words joined by `_`.
  case word(String)
  /// The set fields of a record, by name.
  case record([String: FieldValue])
  case list([FieldValue])
  /// Values by keys that the caller chooses.
  case map([String: FieldValue])
}

extension FieldValue {
  /// A serialized form that is equal for equal values and different for different values.
  ///
  /// Each value starts with a byte for its kind. Everything of variable length is preceded by its length, and names are
  /// sorted.
  package var canonicalBytes: [UInt8] {
    switch self {
    case .flag(let value): [0, value ? 1 : 0]
    case .integer(let value): [1] + Self.bytes(value)
    case .number(let value): [2] + Self.bytes(value.bitPattern)
    case .word(let text): [3] + Self.bytes(text)
    case .record(let fields): [4] + Self.bytes(fields)
    case .list(let elements): [5] + Self.bytes(UInt64(elements.count)) + elements.flatMap(\.canonicalBytes)
    case .map(let entries): [6] + Self.bytes(entries)
    }
  }

  private static func bytes(_ value: UInt64) -> [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }

  private static func bytes(_ text: String) -> [UInt8] { bytes(UInt64(text.utf8.count)) + text.utf8 }

  private static func bytes(_ entries: [String: FieldValue]) -> [UInt8] {
    let sorted = entries.sorted { $0.key < $1.key }
    return bytes(UInt64(sorted.count)) + sorted.flatMap { bytes($0.key) + $0.value.canonicalBytes }
  }
}

/// An error in the value of a field.
package struct FieldError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The field as the user spelled it: `crop.width` or `--crop`.
  package var field: String
  /// One sentence that names the field, the value and the accepted values.
  package var message: String

  /// Creates an error about the value of one field; `message` is shown to the user unchanged.
  package init(_ message: String, field: String) {
    (self.field, self.message) = (field, message)
  }

  package var description: String { message }
}
