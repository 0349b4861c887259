/// Vendor-specific pairs propagated along a trace: at most 32, the newest first.
///
/// Only as many as fit in 512 bytes are kept, which the standard asks for: every span of a call has them.
/// Source: W3C Trace Context, section 3.3.
struct TraceState: Hashable, Sendable, CustomStringConvertible {
  private static let maxCount = 32
  private static let maxByteCount = 512

  private(set) var description = ""

  init() {}

  /// Parses a header; the state is empty if any part is malformed, as the standard requires.
  init(header: String) {
    var keys: Set<Substring> = []
    var members: [Substring] = []
    for part in header.split(separator: ",") {
      let member = part.trimmed
      guard !member.isEmpty else { continue }
      guard let equals = member.firstIndex(of: "="), Self.isKey(member[..<equals].utf8),
        Self.isValue(member[member.index(after: equals)...].utf8), keys.insert(member[..<equals]).inserted
      else { return }
      members.append(member)
    }
    guard members.count <= Self.maxCount else { return }
    var byteCount = -1
    let kept = members.prefix { member in
      byteCount += 1 + member.utf8.count
      return byteCount <= Self.maxByteCount
    }
    description = kept.joined(separator: ",")
  }

  private static func isKey(_ key: Substring.UTF8View) -> Bool {
    let parts = key.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
    guard (1...256).contains(key.count), parts.count <= 2 else { return false }
    return parts.allSatisfy { part in
      guard let first = part.first, isLetter(first) || isDigit(first) else { return false }
      return part.allSatisfy { isLetter($0) || isDigit($0) || "_-*/".utf8.contains($0) }
    }
  }

  private static func isValue(_ value: Substring.UTF8View) -> Bool {
    (1...256).contains(value.count)
      && value.allSatisfy { (0x20...0x7e).contains($0) && $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: "=") }
  }

  private static func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) }
  private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}

extension Substring {
  /// The text without surrounding spaces and tabs, which are allowed around the elements of header lists.
  var trimmed: Substring {
    var text = self
    while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
    while let last = text.last, last == " " || last == "\t" { text.removeLast() }
    return text
  }
}
