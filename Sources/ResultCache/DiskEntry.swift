internal import Crypto

/// The file format of a cached result.
///
/// A file consists of a magic word, the key, the lengths of metadata and body (little-endian, 8 bytes each), and the
/// SHA-256 digest of all of these and of the data that follows; then the metadata and the body.
enum DiskEntry {
  private static let magic = Array("IWRESLT1".utf8)
  private static let digestOffset = magic.count + CacheKey.byteCount + 16
  static let headerByteCount = digestOffset + SHA256.byteCount
  /// The size of the portions into which a body is split when it is read.
  static let chunkByteCount = 64 * 1024

  /// The contents of a file's header.
  struct Header {
    var metadataByteCount: Int
    var bodyByteCount: Int
    fileprivate var hasher: SHA256
    fileprivate var digest: [UInt8]

    /// Adds the next bytes after the header to the digest.
    mutating func update(_ bytes: [UInt8]) { hasher.update(data: bytes) }

    /// Whether the file's bytes match the digest in the header.
    var isIntact: Bool { Array(hasher.finalize()) == digest }
  }

  static func byteCount(_ result: CachedResult) -> Int {
    headerByteCount + result.metadata.count + result.chunks.reduce(0) { $0 + $1.count }
  }

  static func header(of result: CachedResult, key: CacheKey) -> [UInt8] {
    var bytes = magic + key.bytes
    for length in [result.metadata.count, result.chunks.reduce(0) { $0 + $1.count }] {
      withUnsafeBytes(of: UInt64(length).littleEndian) { bytes += $0 }
    }
    var hasher = SHA256()
    hasher.update(data: bytes)
    hasher.update(data: result.metadata)
    for chunk in result.chunks { hasher.update(data: chunk) }
    return bytes + hasher.finalize()
  }

  /// Parses a header.
  /// - Returns: `nil` if the bytes are not a valid header for this key and file size.
  static func readHeader(_ bytes: [UInt8], key: CacheKey, fileByteCount: Int) -> Header? {
    guard bytes.count == headerByteCount, bytes.starts(with: magic + key.bytes) else { return nil }
    let offset = magic.count + CacheKey.byteCount
    let lengths = [offset, offset + 8].map { start in
      (0..<8).reduce(UInt64(0)) { $0 | UInt64(bytes[start + $1]) << UInt64(8 * $1) }
    }
    let limit = UInt64(CacheLimits.maxResultByteCount)
    guard lengths[0] <= limit, lengths[1] <= limit,
      UInt64(fileByteCount) == UInt64(headerByteCount) + lengths[0] + lengths[1]
    else { return nil }
    var hasher = SHA256()
    hasher.update(data: bytes[..<digestOffset])
    return Header(
      metadataByteCount: Int(lengths[0]), bodyByteCount: Int(lengths[1]), hasher: hasher,
      digest: Array(bytes[digestOffset...]))
  }
}
