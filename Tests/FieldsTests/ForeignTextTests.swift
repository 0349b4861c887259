import Testing

@testable import Fields

@Suite("Foreign text")
struct ForeignTextTests {
  @Test("is shown and compared by 64 bytes at most, also one letter with any number of accents")
  func bounded() {
    let letter = "e" + String(repeating: "\u{301}", count: 100_000)
    #expect(letter.beginning.utf8.count < 70 && letter.asName == nil)
    let name = String(repeating: "x", count: 64)
    #expect(name.beginning == name && name.asName == name && "\(name)x".asName == nil)
    #expect("\(name)x".beginning == name)
  }
}
