/// The EXIF orientation of a PNG whose eXIf chunk follows its image data.
///
/// Some programs add the chunk at the end of the file, where a decoder meets it after it has returned all rows. A caller
/// that knows the whole file looks for it first. Nothing here reads beyond the bounds of the untrusted file.
package enum LateOrientation {
  /// The maximum number of chunks to pass: those of 2 GiB, as most programs write them.
  private static let maxChunkCount = 1 << 18
  /// The maximum size of an eXIf chunk in bytes; the decoder skips larger ones.
  private static let maxByteCount = 1 << 16
  private static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

  /// Returns the orientation in the first eXIf chunk behind the image data.
  ///
  /// Only the heads of other chunks are read.
  /// - Parameter read: Returns bytes of the file at an offset; fewer at its end.
  /// - Returns: `nil` if the file is no PNG, has no such chunk or one before its image data, or if the chunk is damaged or
  ///   specifies no orientation.
  package static func find(_ read: (_ offset: Int, _ byteCount: Int) -> [UInt8]) -> Orientation? {
    guard read(0, signature.count) == signature else { return nil }
    var (place, isBehindData) = (signature.count, false)
    for _ in 0..<maxChunkCount {
      let head = read(place, 8)
      guard head.count == 8, head[0] < 0x80 else { return nil }
      let byteCount = TIFFReader.number(head[..<4], isBig: true)
      switch String(decoding: head[4...], as: UTF8.self) {
      case "IEND": return nil
      case "IDAT": isBehindData = true
      case "eXIf" where !isBehindData: return nil
      case "eXIf" where byteCount <= maxByteCount:
        let chunk = read(place + 4, 4 + byteCount + 4)
        guard chunk.count == 4 + byteCount + 4,
          checksum(chunk.dropLast(4)) == TIFFReader.number(chunk.suffix(4), isBig: true)
        else { return nil }
        return orientation(inTIFF: chunk.dropFirst(4).dropLast(4))
      default: break
      }
      place += 8 + byteCount + 4
    }
    return nil
  }

  /// Returns the orientation in a file in memory.
  package static func find(in file: RawSpan) -> Orientation? {
    file.withUnsafeBytes { bytes in find { [UInt8](bytes.dropFirst($0).prefix($1)) } }
  }

  /// Returns the CRC-32 of a chunk's type and body (PNG specification, annex D).
  private static func checksum(_ bytes: some Sequence<UInt8>) -> Int {
    let remainder = bytes.reduce(~UInt32(0)) { remainder, byte in
      (0..<8).reduce(remainder ^ UInt32(byte)) { value, _ in value >> 1 ^ (value & 1 == 1 ? 0xEDB8_8320 : 0) }
    }
    return Int(~remainder)
  }

  /// Returns the orientation in IFD0 of a TIFF block, as `ccodecs_exif_orientation` does.
  ///
  /// Source: CIPA DC-008 (Exif 2.32), section 4.6.2.
  private static func orientation(inTIFF bytes: ArraySlice<UInt8>) -> Orientation? {
    guard let reader = TIFFReader(Array(bytes)), let directory = reader.number(at: 4, byteCount: 4), directory >= 8,
      let entry = reader.entry(0x0112, ofDirectoryAt: directory), reader.number(at: entry + 8, byteCount: 4) != nil,
      reader.number(at: entry + 2, byteCount: 2) == 3, reader.number(at: entry + 4, byteCount: 4) == 1
    else { return nil }
    return reader.number(at: entry + 8, byteCount: 2).flatMap { Orientation(rawValue: $0) }
  }
}
