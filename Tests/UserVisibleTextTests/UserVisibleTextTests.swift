import ArgumentParser
import Foundation
import Testing
import WorkerTelemetry

@testable import image_worker

/// Checks the file with all texts that users see; `make text` regenerates it.
@Suite("User-visible text")
struct UserVisibleTextTests {
  @Test("UserVisibleText.md has every text; `make text` updates it")
  func upToDate() throws {
    try expect("Tests/UserVisibleTextTests/UserVisibleText.md", toContain: UserVisibleText.collected())
  }

  @Test("the page of all options has every option; `make text` updates it")
  func optionsAreUpToDate() throws {
    try expect("Sources/image-worker/Documentation.docc/Options.md", toContain: UserVisibleText.options())
  }

  private func expect(_ path: String, toContain text: String) throws {
    let file = Checkout.root.appendingPathComponent(path)
    if ProcessInfo.processInfo.environment["UPDATE_USER_VISIBLE_TEXT"] != nil {
      try text.write(to: file, atomically: true, encoding: .utf8)
    }
    let lines = text.split(separator: "\n")
    let committed = try Checkout.text(path).split(separator: "\n")
    let missing = Set(lines).subtracting(committed).sorted().joined(separator: "\n")
    let stale = Set(committed).subtracting(lines).sorted().joined(separator: "\n")
    let isUpToDate = lines == committed
    #expect(isUpToDate, "run `make text`, review the change and commit it\nnew:\n\(missing)\nold:\n\(stale)")
  }

  @Test("the texts use the project's terms")
  func words() throws {
    let avoided = try Regex(#"(?i)\bpictures?\b|can't|heed|\binks?\b|gone on with|\btold\b|\btells?\b|\bheir\b"#)
    for line in try (UserVisibleText.collected() + UserVisibleText.contract()).split(separator: "\n") {
      // Code is exempt.
      let prose = line.replacing(/`[^`]*`|--[a-z-]+/, with: "")
      #expect(prose.firstMatch(of: avoided) == nil, "\(line)")
    }
  }

  @Test(
    "literals are found in their statements",
    arguments: [
      (#"throw E("one \(two) three " + "four")"#, [#"one \(two) three four"#]),
      (#"f("one two", "three four")"#, ["one two", "three four"]),
      ("// \"not this\"\nlet a = \"but this\"", ["but this"]),
      (#"precondition(x, "no such row")"#, []),
      ("let a = \"\"\"\n  first \\\n  line\n  second\n  \"\"\"", ["first line\nsecond"]),
      (#"/* "not this" */ fail(d, CODE, "it has %u rows")"#, ["it has %u rows"]),
      (#"call("word", "\(a) \(b)", '"', "two words")"#, ["two words"]),
    ])
  func scanner(source: String, texts: [String]) {
    #expect(SourceScanner.texts(in: source) == texts)
  }
}
