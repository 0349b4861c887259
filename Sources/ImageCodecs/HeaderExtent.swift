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
