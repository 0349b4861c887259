internal import Crypto

/// The key of a cached result: a digest of the image's bytes and of the requested configuration.
package struct CacheKey: Sendable, Hashable {
  /// The version of the key's form; increment it when the format of entries changes.
  private static let generation: UInt8 = 1

  /// A SHA-256 digest.
  let bytes: [UInt8]

  static let byteCount = SHA256.byteCount

  /// Computes the key of a result.
  /// - `input`: the hasher after all bytes of the image.
  /// - `configuration`: the request, serialized so that equal requests have equal bytes.
  package init(input: InputHasher, configuration: [UInt8]) {
    var hasher = SHA256()
    hasher.update(data: [Self.generation])
    hasher.update(data: input.digest)
    hasher.update(data: configuration)
    bytes = Array(hasher.finalize())
  }

  /// Computes the key of a result that may depend on others, with which it is produced.
  /// - `keys`: those that each result has by itself, in any order.
  package init(_ key: CacheKey, among keys: [CacheKey]) {
    var hasher = SHA256()
    hasher.update(data: key.bytes)
    for other in keys.map(\.hexadecimal).sorted() { hasher.update(data: Array(other.utf8)) }
    bytes = Array(hasher.finalize())
  }

  /// The key as 64 lower-case hexadecimal digits.
  var hexadecimal: String { bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() }

  /// Parses a key.
  /// - `hexadecimal`: 64 lower-case hexadecimal digits; otherwise the result is `nil`.
  init?(hexadecimal: some StringProtocol) {
    let digits = hexadecimal.compactMap { $0.isUppercase ? nil : $0.hexDigitValue }
    guard digits.count == 2 * Self.byteCount, hexadecimal.utf8.count == digits.count else { return nil }
    bytes = (0..<Self.byteCount).map { UInt8(digits[2 * $0] << 4 | digits[2 * $0 + 1]) }
  }
}

/// An incremental SHA-256 hasher (FIPS 180-4) of an image's bytes, in portions of any size.
package struct InputHasher: Sendable {
  private var hasher = SHA256()

  package init() {}

  /// Adds the next bytes of the image.
  package mutating func update(_ bytes: UnsafeRawBufferPointer) { hasher.update(bufferPointer: bytes) }

  /// Returns the digest of a file.
  package static func digest(of bytes: UnsafeRawBufferPointer) -> [UInt8] {
    var hasher = InputHasher()
    hasher.update(bytes)
    return hasher.digest
  }

  /// The digest of the bytes so far.
  var digest: [UInt8] { Array(hasher.finalize()) }
}
