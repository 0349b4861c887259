/// Splits XML into tags and the text between them, without a document type, CDATA or comments.
struct XMLReader {
  enum Token {
    case text(ArraySlice<UInt8>)
    /// A processing instruction, as written.
    case instruction(ArraySlice<UInt8>)
    case start(ArraySlice<UInt8>, [Attribute], isEmpty: Bool)
    case end(ArraySlice<UInt8>)
  }

  /// An attribute: its name, and its name, equals sign and quoted value as written.
  struct Attribute {
    var name: ArraySlice<UInt8>
    var text: ArraySlice<UInt8>

    /// The value without its quotes.
    var value: ArraySlice<UInt8> {
      let quote = UInt8(ascii: text.last == UInt8(ascii: "'") ? "'" : "\"")
      guard let start = text.firstIndex(of: quote) else { return [] }
      return text[(start + 1)...].dropLast()
    }
  }

  private var rest: ArraySlice<UInt8>
  private var isMalformed = false

  init(_ bytes: [UInt8]) { rest = bytes[...] }

  /// Whether all of the input was read, and was well-formed as far as this reader checks.
  var isAtEnd: Bool { rest.isEmpty && !isMalformed }

  /// Returns the next token; `nil` at the end, and for what is malformed.
  mutating func next() -> Token? {
    guard let first = rest.first, !isMalformed else { return nil }
    guard first == UInt8(ascii: "<") else {
      let text = rest.prefix { $0 != UInt8(ascii: "<") }
      rest = rest.dropFirst(text.count)
      return .text(text)
    }
    let token = hasPrefix("<!--") ? comment() : hasPrefix("<?") ? instruction() : hasPrefix("</") ? end() : start()
    isMalformed = token == nil
    return token
  }

  private func hasPrefix(_ text: String) -> Bool { rest.starts(with: text.utf8) }

  /// Reads up to the end of `terminator`, and returns what was read.
  private mutating func take(through terminator: String) -> ArraySlice<UInt8>? {
    guard let place = rest.firstPosition(of: terminator) else { return nil }
    defer { rest = rest[(place + terminator.utf8.count)...] }
    return rest[..<(place + terminator.utf8.count)]
  }

  private mutating func comment() -> Token? { take(through: "-->").map { .text($0.prefix(0)) } }

  private mutating func instruction() -> Token? { take(through: "?>").map { .instruction($0) } }

  private mutating func end() -> Token? {
    rest = rest.dropFirst(2)
    guard let name = name() else { return nil }
    skipSpace()
    guard rest.popFirst() == UInt8(ascii: ">") else { return nil }
    return .end(name)
  }

  private mutating func start() -> Token? {
    rest = rest.dropFirst()
    guard let name = name() else { return nil }
    var attributes: [Attribute] = []
    while true {
      skipSpace()
      if hasPrefix("/>") {
        rest = rest.dropFirst(2)
        return .start(name, attributes, isEmpty: true)
      }
      if hasPrefix(">") {
        rest = rest.dropFirst()
        return .start(name, attributes, isEmpty: false)
      }
      guard let attribute = attribute() else { return nil }
      attributes.append(attribute)
    }
  }

  private mutating func attribute() -> Attribute? {
    let start = rest.startIndex
    let whole = rest
    guard let name = name() else { return nil }
    skipSpace()
    guard rest.popFirst() == UInt8(ascii: "=") else { return nil }
    skipSpace()
    guard let quote = rest.popFirst(), quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'"),
      let end = rest.firstIndex(of: quote), !rest[rest.startIndex..<end].contains(UInt8(ascii: "<"))
    else { return nil }
    rest = rest[(end + 1)...]
    return Attribute(name: name, text: whole[start...end])
  }

  private mutating func name() -> ArraySlice<UInt8>? {
    let name = rest.prefix { byte in
      byte > 0x20 && !"<>/=\"'!?&".utf8.contains(byte)
    }
    rest = rest.dropFirst(name.count)
    return name.isEmpty ? nil : name
  }

  private mutating func skipSpace() {
    rest = rest.drop { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
  }
}
