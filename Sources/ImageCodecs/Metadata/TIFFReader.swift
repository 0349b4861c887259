/// Reads numbers in the byte order of a TIFF block.
struct TIFFReader {
  let bytes: [UInt8]
  let isBig: Bool

  /// Returns `nil` for bytes that are no TIFF block.
  init?(_ bytes: [UInt8]) {
    switch Array(bytes.prefix(4)) {
    case [0x4D, 0x4D, 0, 42]: isBig = true
    case [0x49, 0x49, 42, 0]: isBig = false
    default: return nil
    }
    self.bytes = bytes
  }

  /// Returns `byteCount` bytes at `offset`; `nil` if they are not in the block.
  func slice(at offset: Int, byteCount: Int) -> [UInt8]? {
    guard offset >= 0, byteCount >= 0, offset <= bytes.count, byteCount <= bytes.count - offset else { return nil }
    return Array(bytes[offset..<offset + byteCount])
  }

  /// Returns the number of 1 to 4 bytes at `offset`; `nil` if it is not in the block.
  func number(at offset: Int, byteCount: Int) -> Int? {
    slice(at: offset, byteCount: byteCount).map { Self.number($0[...], isBig: isBig) }
  }

  static func number(_ bytes: ArraySlice<UInt8>, isBig: Bool) -> Int {
    (isBig ? Array(bytes) : bytes.reversed()).reduce(0) { $0 << 8 | Int($1) }
  }

  static func bytes(_ number: Int, byteCount: Int, isBig: Bool) -> [UInt8] {
    let little = (0..<byteCount).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    return isBig ? little.reversed() : little
  }

  /// Returns the position of the entry of a tag; `nil` if the directory has none.
  func entry(_ tag: Int, ofDirectoryAt directory: Int) -> Int? {
    guard let count = number(at: directory, byteCount: 2) else { return nil }
    return (0..<count).lazy.map { directory + 2 + 12 * $0 }.first { number(at: $0, byteCount: 2) == tag }
  }
}
