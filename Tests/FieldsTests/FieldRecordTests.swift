import Testing

@testable import Fields

private struct Inner: FieldRecord {
  var count: Int?
  var share = 0.5

  static let fields: [Field<Inner>] = [
    Field("count", \.count, .range(1...3), takes: "number", help: "Set the count."),
    Field("share", \.share, .values("between 0 and 1") { (0...1).contains($0) }),
  ]
}

private struct Outer: FieldRecord {
  var name: String?
  var inner: Inner?
  var group: Inner?

  static let fields: [Field<Outer>] = [
    Field("name", \.name, takes: "text", help: "Set the name."),
    Field("inner", \.inner, .function { (inner, field) throws(FieldError) in try inner.validate(field) }),
    Field(group: "group", \.group),
  ]
}

@Suite("FieldRecord")
struct FieldRecordTests {
  private func failure(_ body: () throws(FieldError) -> Void) -> FieldError? {
    do {
      try body()
      return nil
    } catch { return error }
  }

  @Test("names an invalid field by its full path")
  func rules() {
    let cases: [(Outer, String?)] = [
      (Outer(name: "a", inner: Inner(count: 1), group: Inner(count: 3)), nil),
      (Outer(inner: Inner(count: 0)), "inner.count"), (Outer(inner: Inner(share: 2)), "inner.share"),
      (Outer(group: Inner(count: 4)), "group.count"), (Outer(group: Inner(share: .nan)), "group.share"),
    ]
    for (record, field) in cases {
      let error = failure { () throws(FieldError) in try record.validate("") }
      #expect(error?.field == field)
      #expect(field == nil || error?.message.hasPrefix("\(field ?? "") is ") == true)
    }
  }

  @Test("shows the beginning of a long value, also of one letter with any number of accents")
  func longValues() {
    let rule = FieldRule<String>.values("at most 9 bytes") { $0.utf8.count <= 9 }
    for text in [String(repeating: "x", count: 100_000), "e" + String(repeating: "\u{301}", count: 100_000)] {
      let message = failure { () throws(FieldError) in try rule.check(text, "name") }?.message ?? ""
      #expect(message.hasPrefix("name is ") && message.hasSuffix("…; it must be at most 9 bytes"))
      #expect(message.utf8.count < 200)
    }
    let short = failure { () throws(FieldError) in try rule.check("0123456789", "name") }
    #expect(short?.message == "name is 0123456789; it must be at most 9 bytes")
  }

  @Test("reads a field by its name, and names one of the wrong type by its full path")
  func reading() throws {
    let value = FieldValue.record(["group": .record(["count": .integer(2)]), "unknown": .flag(true)])
    #expect(try Outer(value, field: "") == Outer(group: Inner(count: 2)))
    let wrong = FieldValue.record(["group": .record(["count": .word("2")])])
    let error = failure { () throws(FieldError) in _ = try Outer(wrong, field: "") }
    #expect(error?.field == "group.count" && error?.message == "group.count must be a whole number")
  }

  @Test("merges what another record sets: a group field by field, any other record as a whole")
  func merging() throws {
    let base = Outer(name: "a", inner: Inner(count: 1, share: 0.1), group: Inner(count: 1, share: 0.1))
    #expect(base.overridden(by: Outer()) == base && Outer().overridden(by: base) == base)
    let merged = base.overridden(by: Outer(inner: Inner(share: 0.2), group: Inner(share: 0.2)))
    #expect(merged == Outer(name: "a", inner: Inner(share: 0.2), group: Inner(count: 1, share: 0.2)))
    var changed = base
    let share = FieldValue.record(["share": .number(0.2)])
    try changed.set(.record(["inner": share, "group": share]), field: "")
    #expect(changed == merged)
  }

  @Test("validates an option's value, and names the option")
  func options() throws {
    let options = Outer.fields.flatMap(\.options)
    #expect(options.map(\.path) == [["name"], ["group", "count"]])
    let count = try #require(options.last)
    #expect(try count.value(of: "3") == .integer(3))
    for text in ["4", "0", "x"] {
      let error = failure { () throws(FieldError) in _ = try count.value(of: text) }
      #expect(error?.field == "--count" && error?.message.contains(text) == true, "\(text)")
    }
  }
}
