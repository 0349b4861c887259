import Testing

@testable import Fields

@Suite("Exact text")
struct ExactTests {
  private struct Record: Hashable {
    @Exact var text: String
    @Exact var note: String?
  }

  @Test("is equal if its bytes are, not if people read it in the same way")
  func equality() {
    let texts = ["é", "e\u{301}", "\u{2329}", "\u{3008}", "", "e"]
    #expect(texts[0] == texts[1] && texts[2] == texts[3])
    let records = texts.flatMap { text in (texts + [nil]).map { Record(text: text, note: $0) } }
    #expect(Set(records).count == texts.count * (texts.count + 1))
    for (index, record) in records.enumerated() {
      #expect(records.firstIndex(of: record) == index)
      #expect(Record(text: record.text, note: record.note).hashValue == record.hashValue)
    }
  }

  @Test("is a key of a dictionary by itself")
  func keys() {
    var numbers: [Exact<String>: Int] = [:]
    numbers["é"] = 1
    numbers["e\u{301}"] = 2
    numbers["é"]? += 10
    #expect(numbers["é"] == 11 && numbers["e\u{301}"] == 2 && numbers["e"] == nil)
    numbers["é"] = nil
    #expect(numbers.count == 1)
  }
}
