/// Picture files with segments and chunks put in: profiles and metadata that the fixtures do not have.
package enum Container {
  /// A JPEG with segments behind its start marker.
  package static func jpeg(_ bytes: [UInt8], adding segments: [(marker: UInt8, body: [UInt8])]) -> [UInt8] {
    var result = Array(bytes.prefix(2))
    for (marker, body) in segments {
      result += [0xFF, marker]
      result += bigEndian(body.count + 2, byteCount: 2) + body
    }
    return result + bytes.dropFirst(2)
  }

  /// APP2 segments of a profile, in pieces of at most `pieceByteCount`, in order.
  package static func profileSegments(_ profile: [UInt8], pieceByteCount: Int = 65_000) -> [(UInt8, [UInt8])] {
    let starts = Array(stride(from: 0, to: profile.count, by: pieceByteCount))
    return starts.enumerated().map { index, start in
      let piece = profile[start..<min(start + pieceByteCount, profile.count)]
      return (0xE2, Array("ICC_PROFILE".utf8) + [0, UInt8(index + 1), UInt8(starts.count)] + piece)
    }
  }

  /// A PNG with chunks behind IHDR.
  package static func png(_ bytes: [UInt8], adding chunks: [(type: String, body: [UInt8])]) -> [UInt8] {
    bytes.prefix(33) + chunks.flatMap(pngChunk) + bytes.dropFirst(33)
  }

  /// A PNG of rows as stored, each behind its filter byte, together below 64 KiB.
  package static func png(width: Int, height: Int, bitDepth: UInt8, colorType: UInt8, rows: [UInt8]) -> [UInt8] {
    let size = bigEndian(width, byteCount: 4) + bigEndian(height, byteCount: 4)
    let chunks = [("IHDR", size + [bitDepth, colorType, 0, 0, 0]), ("IDAT", stored(rows)), ("IEND", [])]
    return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + chunks.flatMap(pngChunk)
  }

  package static func pngChunk(_ type: String, _ body: [UInt8]) -> [UInt8] {
    let checked = Array(type.utf8) + body
    return bigEndian(body.count, byteCount: 4) + checked + bigEndian(Int(crc32(checked)), byteCount: 4)
  }

  /// The body of an iCCP chunk.
  package static func profileChunk(_ profile: [UInt8]) -> (String, [UInt8]) {
    ("iCCP", Array("profile".utf8) + [0, 0] + stored(profile))
  }

  /// A lossy WebP without other chunks than its picture's, with chunks before and behind that.
  package static func webp(
    _ bytes: [UInt8], width: Int, height: Int, profile: [UInt8] = [], exif: [UInt8] = []
  ) -> [UInt8] {
    func chunk(_ type: String, _ body: [UInt8]) -> [UInt8] {
      body.isEmpty
        ? []
        : Array(type.utf8) + littleEndian(body.count, byteCount: 4) + body
          + [UInt8](repeating: 0, count: body.count & 1)
    }
    let flags: UInt8 = (profile.isEmpty ? 0 : 0x20) | (exif.isEmpty ? 0 : 0x08)
    let extended = [flags, 0, 0, 0] + littleEndian(width - 1, byteCount: 3) + littleEndian(height - 1, byteCount: 3)
    let body = chunk("VP8X", extended) + chunk("ICCP", profile) + bytes.dropFirst(12) + chunk("EXIF", exif)
    return Array("RIFF".utf8) + littleEndian(body.count + 4, byteCount: 4) + Array("WEBP".utf8) + body
  }

  /// zlib data that is not compressed.
  package static func stored(_ bytes: [UInt8]) -> [UInt8] {
    precondition(bytes.count < 65_536)
    let count = littleEndian(bytes.count, byteCount: 2)
    var (low, high) = (1, 0)
    for byte in bytes {
      low = (low + Int(byte)) % 65_521
      high = (high + low) % 65_521
    }
    return [0x78, 0x01, 1] + count + count.map { ~$0 } + bytes + bigEndian(high << 16 | low, byteCount: 4)
  }

  package static func bigEndian(_ value: Int, byteCount: Int) -> [UInt8] {
    (0..<byteCount).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  package static func littleEndian(_ value: Int, byteCount: Int) -> [UInt8] {
    bigEndian(value, byteCount: byteCount).reversed()
  }

  private static func crc32(_ bytes: [UInt8]) -> UInt32 {
    var crc = UInt32.max
    for byte in bytes {
      crc ^= UInt32(byte)
      for _ in 0..<8 { crc = crc & 1 == 0 ? crc >> 1 : (crc >> 1) ^ 0xEDB8_8320 }
    }
    return ~crc
  }
}
