import Testing

@testable import Fields

@Suite("FieldValue")
struct FieldValueTests {
  /// Values that a careless encoding would not distinguish.
  private static let values: [FieldValue] = [
    .flag(false), .flag(true), .integer(0), .integer(1), .integer(.max), .number(0), .number(-0.0), .number(1),
    .number(Double(bitPattern: 1)), .word(""), .word("0"), .word("1"), .word("a"), .word("ab"),
    .list([]), .list([.word("")]), .list([.word("a"), .word("bc")]), .list([.word("ab"), .word("c")]),
    .list([.list([]), .integer(0)]), .list([.list([.integer(0)])]), .list([.list([.integer(0)]), .list([])]),
    .list([.list([]), .list([.integer(0)])]),
    .record([:]), .record(["a": .integer(0)]), .record(["a": .integer(0), "b": .integer(1)]),
    .record(["a": .record(["b": .integer(1)])]), .record(["a": .record([:]), "b": .integer(1)]),
    .record(["a": .word("b"), "c": .word("")]), .record(["a": .word(""), "c": .word("b")]),
    .record(["a": .flag(true)]), .record(["a": .number(0)]), .map([:]), .map(["a": .integer(0)]),
  ]

  @Test("has different bytes for different values")
  func different() {
    for (index, value) in Self.values.enumerated() {
      for other in Self.values[(index + 1)...] {
        #expect(value.canonicalBytes != other.canonicalBytes, "\(value) and \(other)")
      }
    }
  }

  @Test("has bytes that are not a prefix of another value's")
  func selfDelimiting() {
    let all = Self.values.map(\.canonicalBytes)
    for bytes in all {
      #expect(!all.contains { $0.count > bytes.count && $0.starts(with: bytes) }, "\(bytes)")
    }
  }

  @Test("has the same bytes in whatever order entries were set", arguments: 0..<20)
  func order(rotation: Int) {
    let names = (0..<20).map { "name \($0)" }
    func value(_ names: [String], capacity: Int, _ make: ([String: FieldValue]) -> FieldValue) -> [UInt8] {
      var entries = [String: FieldValue](minimumCapacity: capacity)
      for name in names { entries[name] = .word(name) }
      return make(entries).canonicalBytes
    }
    let rotated = Array(names[rotation...] + names[..<rotation])
    for make in [FieldValue.record, FieldValue.map] {
      #expect(value(names, capacity: 0, make) == value(rotated, capacity: 37 * rotation, make))
    }
  }
}
