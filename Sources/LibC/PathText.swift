/// Paths as text in which no byte is lost.
///
/// Names of files are bytes; arguments and JSON are text. A byte that is not part of UTF-8 becomes a character of a private
/// range, U+10FE00 plus the byte, and so does each byte of such a character.
package enum PathText {
  private static let base: UInt32 = 0x10_FE00

  /// The arguments of this program.
  package static var arguments: [String] {
    (1..<max(1, Int(CommandLine.argc))).compactMap { CommandLine.unsafeArgv[$0].map { text(of: $0) } }
  }

  /// - `string`: bytes that end with NUL.
  package static func text(of string: UnsafePointer<CChar>) -> String {
    text(of: (0..<Int(strlen(string))).map { UInt8(bitPattern: string[$0]) })
  }

  /// The name of an entry of a directory, as `readdir` returns it.
  package static func name(of entry: UnsafePointer<dirent>) -> String {
    let name = UnsafeRawPointer(entry) + (MemoryLayout<dirent>.offset(of: \.d_name) ?? 0)
    return text(of: name.assumingMemoryBound(to: CChar.self))
  }

  /// The text of a path.
  package static func text(of bytes: some Collection<UInt8>) -> String {
    var text = ""
    var rest = bytes[...]
    func escape(_ count: Int) {
      text.unicodeScalars += rest.prefix(count).compactMap { Unicode.Scalar(base + UInt32($0)) }
    }
    var (parser, input) = (UTF8.ForwardParser(), bytes.makeIterator())
    while true {
      switch parser.parseScalar(from: &input) {
      case .emptyInput: return text
      case .valid(let encoded):
        let scalar = UTF8.decode(encoded)
        if byte(of: scalar) == nil { text.unicodeScalars.append(scalar) } else { escape(encoded.count) }
        rest = rest.dropFirst(encoded.count)
      case .error(let length):
        escape(length)
        rest = rest.dropFirst(length)
      }
    }
  }

  /// The bytes of a path.
  package static func bytes(of text: String) -> [UInt8] {
    text.unicodeScalars.flatMap { scalar in byte(of: scalar).map { [$0] } ?? Array(UTF8.encode(scalar) ?? .init()) }
  }

  /// A text with each such byte as people read it, as in `\xe9`.
  package static func readable(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: { byte(of: $0) != nil }) else { return text }
    return text.unicodeScalars.reduce(into: "") { result, scalar in
      if let byte = byte(of: scalar) {
        result += "\\x" + String(byte, radix: 16)
      } else {
        result.unicodeScalars.append(scalar)
      }
    }
  }

  /// The byte that a character stands for; `nil` for all others.
  private static func byte(of scalar: Unicode.Scalar) -> UInt8? {
    (base + 0x80...base + 0xFF).contains(scalar.value) ? UInt8(scalar.value - base) : nil
  }
}
