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
      let byteCount = number(head[..<4])
      switch String(decoding: head[4...], as: UTF8.self) {
      case "IEND": return nil
      case "IDAT": isBehindData = true
      case "eXIf" where !isBehindData: return nil
      case "eXIf" where byteCount <= maxByteCount:
        let chunk = read(place + 4, 4 + byteCount + 4)
        guard chunk.count == 4 + byteCount + 4, checksum(chunk.dropLast(4)) == number(chunk.suffix(4)) else {
          return nil
        }
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

  /// Returns the number in big-endian bytes.
  private static func number(_ bytes: some Sequence<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }

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
    let isBig = bytes.starts(with: "MM\0*".utf8)
    guard isBig || bytes.starts(with: "II*\0".utf8) else { return nil }
    func field(_ offset: Int, _ byteCount: Int) -> Int? {
      let field = bytes.dropFirst(offset).prefix(byteCount)
      guard field.count == byteCount else { return nil }
      return isBig ? number(field) : number(field.reversed())
    }
    guard let directory = field(4, 4), directory >= 8, let entryCount = field(directory, 2) else { return nil }
    for entry in 0..<entryCount {
      let place = directory + 2 + 12 * entry
      guard let tag = field(place, 2), field(place + 8, 4) != nil else { return nil }
      guard tag == 0x0112 else { continue }
      guard field(place + 2, 2) == 3, field(place + 4, 4) == 1 else { return nil }
      return field(place + 8, 2).flatMap { Orientation(rawValue: $0) }
    }
    return nil
  }
}
