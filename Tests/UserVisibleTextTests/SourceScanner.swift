/// Extracts the texts in string literals of Swift and C.
///
/// A text is a literal of several words, including the literals that are appended to it. Interpolations and format
/// specifiers stay unchanged. Comments are skipped, and so are the arguments of checks that no caller can make fail.
struct SourceScanner {
  /// Functions whose messages only developers see.
  private static let checks: Set<String> = ["precondition", "preconditionFailure", "fatalError", "assert", "asm"]

  private let source: [Character]
  private var index = 0
  /// The callees of the parentheses around the current position.
  private var callees: [String] = []
  private var texts: [String] = []
  /// Whether only white space and plus signs followed the last literal.
  private var continuesText = false
  private var lastText: String?

  private init(_ source: String) { self.source = Array(source) }

  /// Returns the texts of a file in order.
  static func texts(in source: String) -> [String] {
    var scanner = SourceScanner(source)
    scanner.scan()
    return scanner.texts.filter(isSentence)
  }

  /// Returns whether a text has two adjacent words.
  private static func isSentence(_ text: String) -> Bool {
    let words = text.replacing(/\\\((?:[^()]|\([^()]*\))*\)/, with: "_").split(separator: " ")
    let isWord = words.map { word in
      word.count { $0.isLetter } > 1 && !word.contains { "%_\\=<>".contains($0) } || word == "a"
    }
    return zip(isWord, isWord.dropFirst()).contains { $0 && $1 }
  }

  private mutating func scan() {
    while index < source.count {
      switch source[index] {
      case "/" where next == "/": skipLine()
      case "/" where next == "*": skipBlock()
      case "#" where isDirective: skipLine()
      case "'": skipCharacter()
      case "\"": readText()
      case "(":
        callees.append(callee())
        continuesText = false
        index += 1
      case ")":
        _ = callees.popLast()
        continuesText = false
        index += 1
      case let other:
        if !other.isWhitespace, other != "+" { continuesText = false }
        index += 1
      }
    }
    finishText()
  }

  private var next: Character? { index + 1 < source.count ? source[index + 1] : nil }

  /// Whether an `#include` starts here.
  private var isDirective: Bool { source[index...].starts(with: "#include") }

  private mutating func skipLine() {
    while index < source.count, !source[index].isNewline { index += 1 }
  }

  private mutating func skipBlock() {
    index += 2
    while index < source.count, !(source[index] == "*" && next == "/") { index += 1 }
    index += 2
  }

  /// Skips a C character literal; in Swift, an apostrophe occurs only in literals and comments.
  private mutating func skipCharacter() {
    index += 1
    while index < source.count, source[index] != "'" { index += source[index] == "\\" ? 2 : 1 }
    index += 1
  }

  /// Returns the identifier before an opening parenthesis.
  private func callee() -> String {
    let name = source[..<index].reversed().prefix { $0.isLetter || $0.isNumber || $0 == "_" }
    return String(name.reversed())
  }

  private mutating func readText() {
    let isMultiline = source[index...].starts(with: "\"\"\"")
    index += isMultiline ? 3 : 1
    var literal: [Character] = []
    var depth = 0
    while index < source.count {
      let character = source[index]
      if depth == 0, character == "\"", !isMultiline || source[index...].starts(with: "\"\"\"") { break }
      if character == "\\" {
        if next == "(" { depth += 1 }
        literal += [character, next ?? " "]
        index += 2
        continue
      }
      if depth > 0, character == "(" { depth += 1 }
      if depth > 0, character == ")" { depth -= 1 }
      literal.append(character)
      index += 1
    }
    index += isMultiline ? 3 : 1
    guard callees.allSatisfy({ !Self.checks.contains($0) }) else { return }
    let text = isMultiline ? Self.dedented(String(literal)) : String(literal)
    if continuesText, let last = lastText {
      lastText = last + text
    } else {
      finishText()
      lastText = text
    }
    continuesText = true
  }

  private mutating func finishText() {
    if let lastText { texts.append(lastText) }
    lastText = nil
  }

  /// Returns the lines of a multi-line literal without their indentation and continuations.
  private static func dedented(_ text: String) -> String {
    text.split(separator: "\n").map { line in String(line.drop { $0 == " " }) }
      .filter { !$0.isEmpty }.joined(separator: "\n").replacing("\\\n", with: "")
  }
}
