/// The number of frames of an animation whose header does not contain it.
///
/// A caller that knows the whole file counts them, to find a frame from the end. Nothing here reads beyond the bounds of
/// the untrusted file.
package enum FrameCount {
  private static let (introducer, descriptor, trailer) = (UInt8(0x21), UInt8(0x2C), UInt8(0x3B))

  /// Returns the number of frames of a file in memory; see `find(_:)`.
  package static func find(in file: RawSpan) -> Int? {
    file.withUnsafeBytes { bytes in
      find {
        [UInt8](bytes.dropFirst($0).prefix($1))
      } byte: {
        $0 < bytes.count ? bytes[$0] : nil
      }
    }
  }

  /// Returns the number of frames of a GIF or an animated WebP.
  /// - Parameter read: Returns bytes of the file at an offset; fewer at its end.
  /// - Returns: `nil` if the file is none of them, or incomplete.
  package static func find(_ read: (_ offset: Int, _ byteCount: Int) -> [UInt8]) -> Int? {
    find(read) { read($0, 1).first }
  }

  /// - `byte`: returns one byte of the file; `nil` behind its end. A GIF may have a block in every other byte.
  private static func find(_ read: (_ offset: Int, _ byteCount: Int) -> [UInt8], byte: (Int) -> UInt8?) -> Int? {
    ofGIF(read, byte) ?? ofWebP(read)
  }

  /// Returns the number of frames of a GIF, by the sizes of its blocks.
  ///
  /// Source: GIF89a.
  /// - Returns: `nil` if the file is no GIF, or ends before its trailer.
  private static func ofGIF(_ read: (_ offset: Int, _ byteCount: Int) -> [UInt8], _ byte: (Int) -> UInt8?) -> Int? {
    let screen = read(0, 13)
    guard screen.count == 13, screen.starts(with: "GIF87a".utf8) || screen.starts(with: "GIF89a".utf8) else {
      return nil
    }
    var (place, count) = (13 + tableByteCount(screen[10]), 0)
    while let kind = byte(place) {
      switch kind {
      case 0: place += 1
      case introducer:
        guard let end = endOfBlocks(place + 2, byte) else { return nil }
        place = end
      case descriptor:
        let frame = read(place, 10)
        guard frame.count == 10, let end = endOfBlocks(place + 10 + tableByteCount(frame[9]) + 1, byte) else {
          return nil
        }
        (place, count) = (end, count + 1)
      case trailer: return count
      default: return nil
      }
    }
    return nil
  }

  /// Returns the offset behind the sub-blocks at `place`.
  private static func endOfBlocks(_ place: Int, _ byte: (Int) -> UInt8?) -> Int? {
    var place = place
    while let byteCount = byte(place) {
      place += 1 + Int(byteCount)
      if byteCount == 0 { return place }
    }
    return nil
  }

  private static func tableByteCount(_ flags: UInt8) -> Int { flags & 0x80 == 0 ? 0 : 6 << Int(flags & 7) }

  /// Returns the number of frames of a WebP, by the sizes of its chunks.
  ///
  /// Source: WebP Container Specification.
  /// - Returns: `nil` if the file is no animated WebP, or incomplete.
  private static func ofWebP(_ read: (_ offset: Int, _ byteCount: Int) -> [UInt8]) -> Int? {
    let start = read(0, 21)
    guard start.count == 21, start.starts(with: "RIFF".utf8), start[8..<16].elementsEqual("WEBPVP8X".utf8),
      start[20] & 0x02 != 0
    else { return nil }
    let end = 8 + TIFFReader.number(start[4..<8], isBig: false)
    guard read(end - 1, 1).count == 1 else { return nil }
    var (place, count) = (12, 0)
    while end - place >= 8 {
      let header = read(place, 8)
      guard header.count == 8 else { return nil }
      let byteCount = TIFFReader.number(header[4..<8], isBig: false)
      guard byteCount <= end - place - 8 else { break }
      count += header.starts(with: "ANMF".utf8) ? 1 : 0
      place += 8 + byteCount + byteCount % 2
    }
    return count
  }
}
