/// The number of frames of a GIF, which its header does not contain.
///
/// A caller that knows the whole file counts them, to find a frame from the end. Nothing here reads beyond the bounds of
/// the untrusted file.
enum GIFFrames {
  private static let (introducer, descriptor, trailer) = (UInt8(0x21), UInt8(0x2C), UInt8(0x3B))

  /// Returns the number of frames of a file, by the sizes of its blocks.
  ///
  /// Source: GIF89a.
  /// - Parameter read: Returns bytes of the file at an offset; fewer at its end.
  /// - Returns: `nil` if the file is no GIF, or ends before its trailer.
  static func count(_ read: (_ offset: Int, _ byteCount: Int) -> [UInt8]) -> Int? {
    let screen = read(0, 13)
    guard screen.count == 13, screen.starts(with: "GIF87a".utf8) || screen.starts(with: "GIF89a".utf8) else {
      return nil
    }
    var (place, count) = (13 + tableByteCount(screen[10]), 0)
    while let kind = read(place, 1).first {
      switch kind {
      case 0: place += 1
      case introducer:
        guard let end = endOfBlocks(place + 2, read) else { return nil }
        place = end
      case descriptor:
        let frame = read(place, 10)
        guard frame.count == 10, let end = endOfBlocks(place + 10 + tableByteCount(frame[9]) + 1, read) else {
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
  private static func endOfBlocks(_ place: Int, _ read: (Int, Int) -> [UInt8]) -> Int? {
    var place = place
    while let byteCount = read(place, 1).first {
      place += 1 + Int(byteCount)
      if byteCount == 0 { return place }
    }
    return nil
  }

  private static func tableByteCount(_ flags: UInt8) -> Int { flags & 0x80 == 0 ? 0 : 6 << Int(flags & 7) }
}
