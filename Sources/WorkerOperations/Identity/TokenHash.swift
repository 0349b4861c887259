internal import Crypto
internal import FoundationEssentials

/// The SHA-256 hash of a bearer token, compared in constant time.
package struct TokenHash: Sendable, Equatable {
  private let words: [UInt64]

  /// Hashes a token.
  package init(of token: String) {
    words = Self.words(SHA256.hash(data: Data(token.utf8)).map { UInt64($0) }, bitCount: 8)
  }

  /// Reads a hash from 64 hexadecimal digits; `nil` if the text is something else.
  package init?(hexadecimal text: String) {
    let digits = text.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue.map(UInt64.init) }
    guard digits.count == 64, text.utf8.count == 64 else { return nil }
    words = Self.words(digits, bitCount: 4)
  }

  /// Joins parts of so many bits to words, the highest bits first.
  private static func words(_ parts: [UInt64], bitCount: Int) -> [UInt64] {
    stride(from: 0, to: parts.count, by: 64 / bitCount).map { start in
      parts[start..<start + 64 / bitCount].reduce(0) { $0 << bitCount | $1 }
    }
  }

  /// The hash as 64 hexadecimal digits.
  package var hexadecimal: String {
    words.map { word in
      let digits = String(word, radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }

  /// Whether two hashes are equal; takes the same time wherever they differ.
  package static func == (one: TokenHash, other: TokenHash) -> Bool {
    zip(one.words, other.words).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
  }
}
