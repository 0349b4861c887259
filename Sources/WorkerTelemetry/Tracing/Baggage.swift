package import Tracing

/// Names and values that a caller propagates with a call.
///
/// They belong to the caller and are never written to spans. Source: W3C Baggage.
package struct Baggage: Hashable, Sendable {
  /// One entry of the baggage.
  package struct Member: Hashable, Sendable {
    /// The key, unique in the baggage.
    package var key: String
    /// The decoded value.
    package var value: String
    /// The text after the value's first semicolon, unmodified.
    var properties: String = ""
  }

  // Minimum limits that every implementation must support; anything above them is cut off.
  private static let maxCount = 64
  private static let maxByteCount = 8192

  /// Members in the order of the header.
  package private(set) var members: [Member] = []

  /// Parses a header; malformed members are skipped.
  init(header: String) {
    var byteCount = 0
    for part in header.split(separator: ",") {
      byteCount += part.utf8.count + 1
      guard members.count < Self.maxCount, byteCount <= Self.maxByteCount else { return }
      guard let member = Member(part) else { continue }
      members.removeAll { $0.key == member.key }
      members.append(member)
    }
  }

  var header: String { members.map(\.header).joined(separator: ",") }
}

extension Baggage.Member {
  fileprivate init?(_ text: Substring) {
    let parts = text.split(separator: ";", maxSplits: 1, omittingEmptySubsequences: false)
    guard let equals = parts[0].firstIndex(of: "=") else { return nil }
    let key = parts[0][..<equals].trimmed
    let encoded = parts[0][parts[0].index(after: equals)...].trimmed
    guard !key.isEmpty, key.utf8.allSatisfy(PercentEncoding.isToken), let value = PercentEncoding.decode(encoded)
    else { return nil }
    self.init(key: String(key), value: value, properties: parts.count > 1 ? String(parts[1].trimmed) : "")
  }

  fileprivate var header: String {
    "\(key)=\(PercentEncoding.encode(value))" + (properties.isEmpty ? "" : ";\(properties)")
  }
}

/// Percent-encoding as used by baggage and by the OTEL variables with the same syntax.
enum PercentEncoding {
  /// Returns whether a byte is allowed in an HTTP token.
  static func isToken(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }

  /// Decodes percent-encoded text; `nil` if a percent sign is not followed by two digits, or the bytes are not UTF-8.
  static func decode(_ text: Substring) -> String? {
    var bytes: [UInt8] = []
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard rest.count >= 2, let value = UInt8(hexadecimal: Substring(rest.prefix(2)).lowercased()[...].utf8)
      else { return nil }
      bytes.append(value)
      rest = rest.dropFirst(2)
    }
    return String(validating: bytes, as: UTF8.self)
  }

  static func encode(_ text: String) -> String {
    var result = ""
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "%"), UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: "\\"), UInt8(ascii: "\""), 0...0x20,
        0x7f...0xff:
        result += "%" + byte.hexadecimal.uppercased()
      default: result.unicodeScalars.append(Unicode.Scalar(byte))
      }
    }
    return result
  }
}

private enum BaggageKey: InstrumentationContextKey {
  typealias Value = Baggage
}

extension InstrumentationContext {
  /// The baggage received from the caller.
  package var baggage: Baggage? {
    get { self[BaggageKey.self] }
    set { self[BaggageKey.self] = newValue }
  }
}
