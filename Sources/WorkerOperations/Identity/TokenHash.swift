internal import Crypto
internal import FoundationEssentials

/// The SHA-256 hash of a bearer token, compared in constant time.
package struct TokenHash: Sendable, Equatable {
  private let bytes: [UInt8]

  /// Hashes a token.
  package init(of token: String) { bytes = Array(SHA256.hash(data: Data(token.utf8))) }

  /// Reads a hash from 64 hexadecimal digits; `nil` if the text is something else.
  package init?(hexadecimal text: String) {
    let digits = text.compactMap(\.hexDigitValue)
    guard digits.count == 64, text.utf8.count == 64 else { return nil }
    bytes = (0..<32).map { UInt8(digits[2 * $0] << 4 | digits[2 * $0 + 1]) }
  }

  /// The hash as 64 hexadecimal digits.
  package var hexadecimal: String { bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() }

  /// Whether two hashes are equal; takes the same time wherever they differ.
  package static func == (one: TokenHash, other: TokenHash) -> Bool {
    zip(one.bytes, other.bytes).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
  }
}
