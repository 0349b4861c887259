internal import Crypto

/// What a result is the result of: the bytes of an image, and what was asked for.
package struct CacheKey: Sendable, Hashable {
  /// Counted up when entries are written in another form.
  private static let generation: UInt8 = 1

  /// A SHA-256 digest.
  let bytes: [UInt8]

  static let byteCount = SHA256.byteCount

  init(bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// - `input`: of all bytes of the image.
  /// - `configuration`: what was asked for, in a form in which equal requests have equal bytes.
  package init(input: InputHasher, configuration: [UInt8]) {
    var hasher = SHA256()
    hasher.update(data: [Self.generation])
    hasher.update(data: input.digest)
    hasher.update(data: configuration)
    bytes = Array(hasher.finalize())
  }

  /// 64 lower-case hexadecimal digits.
  var hexadecimal: String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }

  /// - `hexadecimal`: 64 lower-case digits; anything else gives `nil`.
  init?(hexadecimal: some StringProtocol) {
    let digits = hexadecimal.utf8.map { digit -> UInt8 in
      switch digit {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
      default: 255
      }
    }
    guard digits.count == 2 * Self.byteCount, !digits.contains(255) else { return nil }
    bytes = (0..<Self.byteCount).map { digits[2 * $0] << 4 | digits[2 * $0 + 1] }
  }
}

/// SHA-256 (FIPS 180-4) of an image's bytes while they arrive, in any portions.
package struct InputHasher: Sendable {
  private var hasher = SHA256()

  package init() {}

  package mutating func update(_ bytes: UnsafeRawBufferPointer) { hasher.update(bufferPointer: bytes) }

  /// Of the bytes so far.
  var digest: [UInt8] { Array(hasher.finalize()) }
}
