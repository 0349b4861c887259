/// A lower bound of the header size of a file, computed from the bytes at its start.
package enum HeaderExtent {
  /// Returns the minimum number of bytes that are missing from the header, or 0 if it appears complete.
  ///
  /// JPEG segments and PNG chunks start with their lengths.
  /// - Returns: `nil` if the file is not JPEG or PNG, or violates its format.
  package static func missingByteCount(_ bytes: RawSpan) -> Int? {
    guard !bytes.isEmpty, let format = ImageFormat.sniff(bytes) else { return nil }
    // Other formats have the header at the start, or need the whole file.
    if format == .jpeg { return bytes.withUnsafeBytes { missingOfJPEG(Bytes($0)) } }
    return format == .png ? bytes.withUnsafeBytes { missingOfPNG(Bytes($0)) } : nil
  }

  /// Bytes with bounds-checked access.
  struct Bytes {
    private let bytes: UnsafeRawBufferPointer

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var count: Int { bytes.count }

    subscript(index: Int) -> Int? { index >= 0 && index < bytes.count ? Int(bytes[index]) : nil }

    /// Returns the big-endian number of `byteCount` bytes at `index`.
    func number(at index: Int, byteCount: Int) -> Int? { number(index..<index + byteCount) }

    /// Returns the little-endian number of `byteCount` bytes at `index`.
    func littleEndian(at index: Int, byteCount: Int) -> Int? { number((index..<index + byteCount).reversed()) }

    private func number(_ indices: some Sequence<Int>) -> Int? {
      var value = 0
      for index in indices {
        guard let byte = self[index] else { return nil }
        value = value << 8 | byte
      }
      return value
    }
  }

  /// Returns the number of bytes missing up to the end of the first scan's header.
  private static func missingOfJPEG(_ bytes: Bytes) -> Int? {
    var place = 2
    // The size of a marker and its length.
    let headByteCount = 4
    while true {
      while bytes[place] == 0xFF, bytes[place + 1] == 0xFF { place += 1 }
      guard let marker = bytes[place + 1], let length = bytes.number(at: place + 2, byteCount: 2) else {
        return place + headByteCount - bytes.count
      }
      guard bytes[place] == 0xFF, length >= 2 else { return nil }
      let end = place + 2 + length
      if marker == 0xDA { return max(0, end - bytes.count) }
      if end > bytes.count { return end + headByteCount - bytes.count }
      place = end
    }
  }

  /// Returns the number of bytes missing up to the data of the first IDAT chunk.
  private static func missingOfPNG(_ bytes: Bytes) -> Int? {
    var place = 8
    // The size of a chunk's length and type.
    let headByteCount = 8
    while true {
      guard let length = bytes.number(at: place, byteCount: 4), let type = bytes.number(at: place + 4, byteCount: 4)
      else { return place + headByteCount - bytes.count }
      if type == 0x4944_4154 { return 0 }
      guard length < 1 << 31 else { return nil }
      let end = place + headByteCount + length + 4  // including the checksum
      if end > bytes.count { return end + headByteCount - bytes.count }
      place = end
    }
  }
}

/// The number of pixels that a header states, for estimates of what the image will cost.
///
/// Nothing is verified: a decoder reads the header again, and rejects what is wrong with it.
extension HeaderExtent {
  /// The maximum size of the metadata that is searched for the size of a HEIF image, in bytes.
  private static let maxMetadataByteCount = 4096

  /// One of so many pixels of a JPEG is decoded: most are decoded at the scale of the result.
  private static let pixelsPerDecodedOneOfJPEG = 4

  /// Returns the number of pixels to decode that the beginning of a file states.
  ///
  /// - Returns: `nil` if the bytes are too few, or if the size has no simple place in the format.
  package static func decodingPixelCount(_ bytes: RawSpan) -> Int? {
    guard !bytes.isEmpty, let format = ImageFormat.sniff(bytes) else { return nil }
    let sides = bytes.withUnsafeBytes { Self.size(Bytes($0), format) }
    guard let width = sides?.width, let height = sides?.height else { return nil }
    let (count, overflows) = abs(width).multipliedReportingOverflow(by: abs(height))
    return overflows ? nil : count / (format == .jpeg ? pixelsPerDecodedOneOfJPEG : 1)
  }

  private static func size(_ bytes: Bytes, _ format: ImageFormat) -> (width: Int?, height: Int?)? {
    switch format {
    case .jpeg: return sizeOfJPEG(bytes)
    case .png: return sizeOfPNG(bytes)
    case .qoi: return (bytes.number(at: 4, byteCount: 4), bytes.number(at: 8, byteCount: 4))
    case .psd: return (bytes.number(at: 18, byteCount: 4), bytes.number(at: 14, byteCount: 4))
    case .webp: return sizeOfWebP(bytes)
    case .gif: return (bytes.littleEndian(at: 6, byteCount: 2), bytes.littleEndian(at: 8, byteCount: 2))
    case .tga: return (bytes.littleEndian(at: 12, byteCount: 2), bytes.littleEndian(at: 14, byteCount: 2))
    case .bmp:
      // A negative height means that the rows stand from top to bottom.
      let height = bytes.littleEndian(at: 22, byteCount: 4).map { Int(Int32(truncatingIfNeeded: $0)) }
      return (bytes.littleEndian(at: 18, byteCount: 4), height)
    case .avif, .heic: return sizeOfHEIF(bytes)
    case .pnm, .hdr, .tiff, .jxl, .jpeg2000, .ico, .raw: return nil
    }
  }

  /// Returns the size in IHDR, which is the first chunk.
  private static func sizeOfPNG(_ bytes: Bytes) -> (Int?, Int?)? {
    guard bytes.number(at: 12, byteCount: 4) == 0x4948_4452 else { return nil }
    return (bytes.number(at: 16, byteCount: 4), bytes.number(at: 20, byteCount: 4))
  }

  /// Returns the size in the frame header, which follows segments with metadata.
  private static func sizeOfJPEG(_ bytes: Bytes) -> (Int?, Int?)? {
    var place = 2
    while true {
      while bytes[place] == 0xFF, bytes[place + 1] == 0xFF { place += 1 }
      guard bytes[place] == 0xFF, let marker = bytes[place + 1],
        let length = bytes.number(at: place + 2, byteCount: 2), length >= 2, marker != 0xDA
      else { return nil }
      // DHT, JPG and DAC are in the range of the frame headers.
      if (0xC0...0xCF).contains(marker), ![0xC4, 0xC8, 0xCC].contains(marker) {
        return (bytes.number(at: place + 7, byteCount: 2), bytes.number(at: place + 5, byteCount: 2))
      }
      place += 2 + length
    }
  }

  private static func sizeOfWebP(_ bytes: Bytes) -> (Int?, Int?)? {
    func field(_ place: Int, _ byteCount: Int) -> Int? { bytes.littleEndian(at: place, byteCount: byteCount) }
    switch bytes.number(at: 12, byteCount: 4) {
    case 0x5650_3858: return (field(24, 3).map { $0 + 1 }, field(27, 3).map { $0 + 1 })  // VP8X
    case 0x5650_384C: return field(21, 4).map { ($0 & 0x3FFF + 1, $0 >> 14 & 0x3FFF + 1) }  // VP8L
    case 0x5650_3820: return (field(26, 2).map { $0 & 0x3FFF }, field(28, 2).map { $0 & 0x3FFF })  // VP8
    default: return nil
    }
  }

  /// Returns the largest of the sizes in `ispe` properties: those of the image, its tiles and its thumbnail.
  private static func sizeOfHEIF(_ bytes: Bytes) -> (Int?, Int?)? {
    var largest: (width: Int, height: Int)?
    for place in 0..<min(bytes.count, maxMetadataByteCount)
    where bytes[place] == 0x69 && bytes.number(at: place, byteCount: 4) == 0x6973_7065 {
      guard let width = bytes.number(at: place + 8, byteCount: 4),
        let height = bytes.number(at: place + 12, byteCount: 4)
      else { break }
      if width > largest?.width ?? 0 { largest = (width, height) }
    }
    return largest.map { ($0.width, $0.height) }
  }
}
