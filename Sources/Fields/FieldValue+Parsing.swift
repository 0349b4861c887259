extension FieldValue {
  /// Parses the form that `canonicalBytes` returns.
  /// - Returns: The value; `nil` if the bytes are anything else.
  package init?(canonicalBytes: [UInt8]) {
    var parser = Parser(bytes: canonicalBytes[...])
    guard let value = parser.value(depth: 0), parser.bytes.isEmpty else { return nil }
    self = value
  }

  private struct Parser {
    /// The maximum nesting of values; configurations need four.
    static let maxDepth = 16

    var bytes: ArraySlice<UInt8>

    mutating func value(depth: Int) -> FieldValue? {
      guard depth < Self.maxDepth, let kind = bytes.popFirst() else { return nil }
      switch kind {
      case 0: return bytes.popFirst().map { .flag($0 != 0) }
      case 1: return integer().map { .integer($0) }
      case 2: return integer().map { .number(Double(bitPattern: $0)) }
      case 3: return text().map { .word($0) }
      case 4: return entries(depth: depth).map { .record($0) }
      case 5:
        guard let count = integer(), count <= bytes.count else { return nil }
        var elements: [FieldValue] = []
        for _ in 0..<count {
          guard let element = value(depth: depth + 1) else { return nil }
          elements.append(element)
        }
        return .list(elements)
      case 6: return entries(depth: depth).map { .map($0) }
      default: return nil
      }
    }

    private mutating func integer() -> UInt64? {
      guard bytes.count >= 8 else { return nil }
      defer { bytes = bytes.dropFirst(8) }
      return bytes.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    private mutating func text() -> String? {
      guard let count = integer(), count <= bytes.count else { return nil }
      defer { bytes = bytes.dropFirst(Int(count)) }
      return String(validating: bytes.prefix(Int(count)), as: UTF8.self)
    }

    private mutating func entries(depth: Int) -> [String: FieldValue]? {
      guard let count = integer(), count <= bytes.count else { return nil }
      var entries: [String: FieldValue] = [:]
      for _ in 0..<count {
        guard let key = text(), let value = value(depth: depth + 1) else { return nil }
        entries[key] = value
      }
      return entries
    }
  }
}
