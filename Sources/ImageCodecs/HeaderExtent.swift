/// How far a file's header reaches, as far as its beginning shows.
package enum HeaderExtent {
  /// Returns how many bytes are missing at least until the header is complete, 0 where it seems to be.
  ///
  /// The segments of JPEG and the chunks of PNG have their lengths in front.
  /// - Returns: `nil` for files that are not JPEG or PNG, or do not keep to their format.
  package static func missingByteCount(_ bytes: RawSpan) -> Int? {
    guard !bytes.isEmpty, let format = ImageFormat.sniff(bytes) else { return nil }
    // Other formats have their header in front, or need the whole file.
    if format == .jpeg { return bytes.withUnsafeBytes { missingOfJPEG(Bytes($0)) } }
    return format == .png ? bytes.withUnsafeBytes { missingOfPNG(Bytes($0)) } : nil
  }

  /// Bytes of which any may be asked for.
  private struct Bytes {
    private let bytes: UnsafeRawBufferPointer

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var count: Int { bytes.count }

    subscript(index: Int) -> Int? { index >= 0 && index < bytes.count ? Int(bytes[index]) : nil }

    /// A number of `byteCount` bytes, the most significant first.
    func number(at index: Int, byteCount: Int) -> Int? {
      var value = 0
      for offset in 0..<byteCount {
        guard let byte = self[index + offset] else { return nil }
        value = value << 8 | byte
      }
      return value
    }
  }

  /// Up to the end of the first scan's header.
  private static func missingOfJPEG(_ bytes: Bytes) -> Int? {
    var place = 2
    // Of the marker and its length.
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

  /// Up to the beginning of the first IDAT's data.
  private static func missingOfPNG(_ bytes: Bytes) -> Int? {
    var place = 8
    // Of length and type.
    let headByteCount = 8
    while true {
      guard let length = bytes.number(at: place, byteCount: 4), let type = bytes.number(at: place + 4, byteCount: 4)
      else { return place + headByteCount - bytes.count }
      if type == 0x4944_4154 { return 0 }
      guard length < 1 << 31 else { return nil }
      let end = place + headByteCount + length + 4  // with its checksum
      if end > bytes.count { return end + headByteCount - bytes.count }
      place = end
    }
  }
}
