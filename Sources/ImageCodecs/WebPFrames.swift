/// The number of frames of an animated WebP, which its header does not contain.
///
/// A caller that knows the whole file counts them, to find a frame from the end. Nothing here reads beyond the bounds of
/// the untrusted file.
enum WebPFrames {
  /// Returns the number of frames of a file, by the sizes of its chunks.
  ///
  /// Source: WebP Container Specification.
  /// - Parameter read: Returns bytes of the file at an offset; fewer at its end.
  /// - Returns: `nil` if the file is no animated WebP, or incomplete.
  static func count(_ read: (_ offset: Int, _ byteCount: Int) -> [UInt8]) -> Int? {
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
