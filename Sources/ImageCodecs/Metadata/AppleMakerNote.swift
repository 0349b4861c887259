/// The two numbers in the maker note of Apple from which the HDR headroom of an image follows.
///
/// Source: Apple, "Applying Apple HDR effect to your photos"; ExifTool, Apple.pm, for the form of the note.
package struct AppleMakerNote: Sendable, Hashable {
  /// The tag 33.
  package var headroom: Double
  /// The tag 48.
  package var gain: Double

  private static let header = Array("Apple iOS\0\0\u{01}MM".utf8)
  private static let signedFraction = 10

  /// Reads an EXIF block, from its byte order on; `nil` if it lacks the note, or one of the numbers.
  package init?(exif: [UInt8]) {
    guard let reader = TIFFReader(exif), let image = reader.number(at: 4, byteCount: 4),
      let exifEntry = reader.entry(0x8769, ofDirectoryAt: image),
      let directory = reader.number(at: exifEntry + 8, byteCount: 4),
      let noteEntry = reader.entry(0x927C, ofDirectoryAt: directory),
      let byteCount = reader.number(at: noteEntry + 4, byteCount: 4),
      let place = reader.number(at: noteEntry + 8, byteCount: 4),
      let bytes = reader.slice(at: place, byteCount: byteCount), bytes.starts(with: Self.header),
      // Positions count from the beginning of the note, which has its own byte order.
      let note = TIFFReader([0x4D, 0x4D, 0, 42] + bytes.dropFirst(4)),
      let headroom = Self.number(33, note), let gain = Self.number(48, note)
    else { return nil }
    (self.headroom, self.gain) = (headroom, gain)
  }

  private static func number(_ tag: Int, _ note: TIFFReader) -> Double? {
    guard let entry = note.entry(tag, ofDirectoryAt: header.count),
      note.number(at: entry + 2, byteCount: 2) == signedFraction,
      let place = note.number(at: entry + 8, byteCount: 4),
      let numerator = note.number(at: place, byteCount: 4), let denominator = note.number(at: place + 4, byteCount: 4)
    else { return nil }
    let number = Double(Int32(truncatingIfNeeded: numerator)) / Double(Int32(truncatingIfNeeded: denominator))
    return number.isFinite ? number : nil
  }
}
