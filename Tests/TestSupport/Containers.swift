/// Image files with added segments and chunks, for profiles and metadata that the fixtures do not contain.
package enum Container {
  /// Returns a JPEG with segments inserted after its start marker.
  package static func jpeg(_ bytes: [UInt8], adding segments: [(marker: UInt8, body: [UInt8])]) -> [UInt8] {
    var result = Array(bytes.prefix(2))
    for (marker, body) in segments {
      result += [0xFF, marker]
      result += bigEndian(body.count + 2, byteCount: 2) + body
    }
    return result + bytes.dropFirst(2)
  }

  /// Returns the APP2 segments of a profile, split into pieces of at most `pieceByteCount`, in order.
  package static func profileSegments(_ profile: [UInt8], pieceByteCount: Int = 65_000) -> [(UInt8, [UInt8])] {
    let starts = Array(stride(from: 0, to: profile.count, by: pieceByteCount))
    return starts.enumerated().map { index, start in
      let piece = profile[start..<min(start + pieceByteCount, profile.count)]
      return (0xE2, Array("ICC_PROFILE".utf8) + [0, UInt8(index + 1), UInt8(starts.count)] + piece)
    }
  }

  /// Returns a PNG with chunks inserted after IHDR.
  package static func png(_ bytes: [UInt8], adding chunks: [(type: String, body: [UInt8])]) -> [UInt8] {
    bytes.prefix(33) + chunks.flatMap(pngChunk) + bytes.dropFirst(33)
  }

  /// Returns a PNG with chunks inserted before IEND.
  package static func png(_ bytes: [UInt8], appending chunks: [(type: String, body: [UInt8])]) -> [UInt8] {
    bytes.dropLast(12) + chunks.flatMap(pngChunk) + bytes.suffix(12)
  }

  /// Returns a TIFF block whose only entry is an orientation.
  package static func exif(orientation: Int, isBig: Bool = true) -> [UInt8] {
    func number(_ value: Int, _ byteCount: Int) -> [UInt8] {
      isBig ? bigEndian(value, byteCount: byteCount) : littleEndian(value, byteCount: byteCount)
    }
    let entry = number(0x0112, 2) + number(3, 2) + number(1, 4) + number(orientation, 2) + [0, 0]
    return Array((isBig ? "MM\0*" : "II*\0").utf8) + number(8, 4) + number(1, 2) + entry + number(0, 4)
  }

  /// Returns a PNG with uncompressed image data: rows that each start with their filter byte, less than 64 KiB
  /// together.
  package static func png(width: Int, height: Int, bitDepth: UInt8, colorType: UInt8, rows: [UInt8]) -> [UInt8] {
    let size = bigEndian(width, byteCount: 4) + bigEndian(height, byteCount: 4)
    let chunks = [("IHDR", size + [bitDepth, colorType, 0, 0, 0]), ("IDAT", stored(rows)), ("IEND", [])]
    return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + chunks.flatMap(pngChunk)
  }

  package static func pngChunk(_ type: String, _ body: [UInt8]) -> [UInt8] {
    let checked = Array(type.utf8) + body
    return bigEndian(body.count, byteCount: 4) + checked + bigEndian(Int(crc32(checked)), byteCount: 4)
  }

  /// Returns the type and body of an iCCP chunk.
  package static func profileChunk(_ profile: [UInt8]) -> (String, [UInt8]) {
    ("iCCP", Array("profile".utf8) + [0, 0] + stored(profile))
  }

  /// Returns an extended WebP from a lossy one that has only an image chunk; the profile precedes it and EXIF follows
  /// it.
  package static func webp(
    _ bytes: [UInt8], width: Int, height: Int, profile: [UInt8] = [], exif: [UInt8] = [], xmp: [UInt8] = []
  ) -> [UInt8] {
    func chunk(_ type: String, _ body: [UInt8]) -> [UInt8] {
      body.isEmpty
        ? []
        : Array(type.utf8) + littleEndian(body.count, byteCount: 4) + body
          + [UInt8](repeating: 0, count: body.count & 1)
    }
    let flags: UInt8 = (profile.isEmpty ? 0 : 0x20) | (exif.isEmpty ? 0 : 0x08) | (xmp.isEmpty ? 0 : 0x04)
    let extended = [flags, 0, 0, 0] + littleEndian(width - 1, byteCount: 3) + littleEndian(height - 1, byteCount: 3)
    let body =
      chunk("VP8X", extended) + chunk("ICCP", profile) + bytes.dropFirst(12) + chunk("EXIF", exif)
      + chunk("XMP ", xmp)
    return Array("RIFF".utf8) + littleEndian(body.count + 4, byteCount: 4) + Array("WEBP".utf8) + body
  }

  /// Returns a TIFF with one uncompressed strip of interleaved samples, little-endian if they have 16 bits.
  package static func tiff(
    width: Int, height: Int, bitDepth: Int, sampleCount: Int, photometric: Int, samples: [UInt8],
    stripByteCount: Int? = nil, profile: [UInt8] = [], sampleFormat: Int = 1,
    alpha: Bool = false, colorMap: [UInt16] = [], sharedTagCount: Int = 0
  ) -> [UInt8] {
    let colors = colorMap.flatMap { littleEndian(Int($0), byteCount: 2) }
    let stripEnd = 8 + samples.count
    var entries = [
      (256, 4, 1, width), (257, 4, 1, height), (258, 3, 1, bitDepth), (259, 3, 1, 1), (262, 3, 1, photometric),
      (273, 4, 1, 8), (277, 3, 1, sampleCount), (278, 4, 1, height), (279, 4, 1, stripByteCount ?? samples.count),
    ]
    if !colors.isEmpty { entries.append((320, 3, colorMap.count, stripEnd + profile.count)) }
    if alpha { entries.append((338, 3, 1, 2)) }
    if sampleFormat != 1 { entries.append((339, 3, 1, sampleFormat)) }
    if !profile.isEmpty { entries.append((34675, 7, profile.count, stripEnd)) }
    entries += (0..<sharedTagCount).map { (40_000 + $0, 1, samples.count, 8) }
    let directory = entries.flatMap { tag, type, count, value in
      littleEndian(tag, byteCount: 2) + littleEndian(type, byteCount: 2) + littleEndian(count, byteCount: 4)
        + littleEndian(value, byteCount: 4)
    }
    return [0x49, 0x49, 42, 0] + littleEndian(stripEnd + profile.count + colors.count, byteCount: 4) + samples + profile
      + colors + littleEndian(entries.count, byteCount: 2) + directory + [0, 0, 0, 0]
  }

  /// Returns a TIFF with compressed strips; strips beyond `blocks` share the bytes of the last one.
  package static func tiff(
    width: Int, height: Int, bitDepth: Int = 8, photometric: Int, sampleCount: Int = 1, rowsPerStrip: Int? = nil,
    compression: Int, blocks: [[UInt8]], blockCount: Int? = nil
  ) -> [UInt8] {
    let count = blockCount ?? blocks.count
    var (starts, next) = ([Int](), 8)
    for block in blocks {
      starts.append(next)
      next += block.count
    }
    let places = (0..<count).map { min($0, blocks.count - 1) }
    let offsets = places.flatMap { littleEndian(starts[$0], byteCount: 4) }
    let counts = places.flatMap { littleEndian(blocks[$0].count, byteCount: 4) }
    let entries = [
      (256, 4, 1, width), (257, 4, 1, height), (258, 3, 1, bitDepth), (259, 3, 1, compression),
      (262, 3, 1, photometric),
      (273, 4, count, count == 1 ? starts[0] : next), (277, 3, 1, sampleCount), (278, 4, 1, rowsPerStrip ?? height),
      (279, 4, count, count == 1 ? blocks[0].count : next + offsets.count),
    ]
    let directory = entries.flatMap { tag, type, count, value in
      littleEndian(tag, byteCount: 2) + littleEndian(type, byteCount: 2) + littleEndian(count, byteCount: 4)
        + littleEndian(value, byteCount: 4)
    }
    return [0x49, 0x49, 42, 0] + littleEndian(next + offsets.count + counts.count, byteCount: 4)
      + blocks.flatMap(\.self) + offsets + counts + littleEndian(entries.count, byteCount: 2) + directory
      + [0, 0, 0, 0]
  }

  /// The compression of a Photoshop document's channels.
  package enum PSDCompression: CaseIterable, Sendable { case raw, packBits }

  /// Returns a Photoshop document with a merged image whose `channels` are stored one after another.
  ///
  /// A negative `layerCount` declares that the first channel after the colors is alpha; `nil` omits the layers.
  package static func psd(
    width: Int, height: Int, bitDepth: Int, mode: Int, channels: [[UInt8]], compression: PSDCompression = .raw,
    palette: [UInt8] = [], profile: [UInt8] = [], layerCount: Int? = nil, isLarge: Bool = false
  ) -> [UInt8] {
    func section(_ body: [UInt8], byteCount: Int = 4) -> [UInt8] { bigEndian(body.count, byteCount: byteCount) + body }
    let wide = isLarge ? 8 : 4
    let size = bigEndian(height, byteCount: 4) + bigEndian(width, byteCount: 4)
    let header =
      Array("8BPS".utf8) + [0, isLarge ? 2 : 1] + [UInt8](repeating: 0, count: 6)
      + bigEndian(channels.count, byteCount: 2) + size + bigEndian(bitDepth, byteCount: 2)
      + bigEndian(mode, byteCount: 2)
    func resource(_ number: Int, _ body: [UInt8]) -> [UInt8] {
      Array("8BIM".utf8) + bigEndian(number, byteCount: 2) + [0, 0] + section(body)
        + [UInt8](repeating: 0, count: body.count & 1)
    }
    let resources = resource(1036, [1, 2, 3]) + (profile.isEmpty ? [] : resource(1039, profile))
    func block(_ key: String, _ body: [UInt8], lengthByteCount: Int = 4) -> [UInt8] {
      Array("8BIM".utf8) + Array(key.utf8) + section(body, byteCount: lengthByteCount)
        + [UInt8](repeating: 0, count: (4 - body.count % 4) % 4)
    }
    let layers =
      layerCount.map { layerCount -> [UInt8] in
        let count = bigEndian(layerCount, byteCount: 2)
        guard bitDepth == 16 else { return bigEndian(2, byteCount: wide) + count }
        // As Photoshop writes them: no layers, a mask, and blocks of which one contains the layers.
        return bigEndian(0, byteCount: wide) + section([1, 2, 3]) + block("Patt", [1, 2, 3, 4, 5])
          + block("Lr16", count + [0, 0], lengthByteCount: wide)
      } ?? []
    let rowByteCount = (width * bitDepth + 7) / 8
    let rows = channels.flatMap { channel in
      (0..<height).map { packBits(Array(channel[$0 * rowByteCount..<($0 + 1) * rowByteCount])) }
    }
    let counts = rows.flatMap { bigEndian($0.count, byteCount: isLarge ? 4 : 2) }
    let data = compression == .raw ? [0, 0] + channels.flatMap(\.self) : [0, 1] + counts + rows.flatMap(\.self)
    return header + section(palette) + section(resources) + section(layers, byteCount: wide) + data
  }

  private static func packBits(_ row: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var start = 0
    while start < row.count {
      let run = row[start...].prefix { $0 == row[start] }.prefix(128).count
      if run > 1 {
        result += [UInt8(257 - run), row[start]]
        start += run
      } else {
        let end = (start + 1..<row.count).first { $0 + 1 < row.count && row[$0] == row[$0 + 1] } ?? row.count
        let count = min(end - start, 128)
        result += [UInt8(count - 1)] + row[start..<start + count] + [128]  // 128 is a no-op
        start += count
      }
    }
    return result
  }

  /// Returns zlib data with stored, uncompressed blocks.
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
