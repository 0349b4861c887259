/// The list of the images in a file of the multi-picture format (CIPA DC-007).
enum MultiPictureList {
  /// An image of a list.
  struct Image: Sendable, Hashable {
    /// Whether the list gives it the purpose of a gain map, or none.
    var mayBeGainMap: Bool
    var byteCount: Int
    /// Its position behind the start of the list.
    var offset: Int
  }

  private static let imagesTag = 0xB002
  private static let gainMapPurpose = 0x5_0000
  private static let tagByteCount = 12
  private static let imageByteCount = 16

  /// Returns the images behind the first one, at most `maxCount`.
  /// - `bytes`: the list, from its byte order on; what it refers to and does not contain is left out.
  static func images(of bytes: [UInt8], maxCount: Int) -> [Image] {
    guard let reader = TIFFReader(bytes), let directory = reader.number(at: 4, byteCount: 4),
      let tagCount = reader.number(at: directory, byteCount: 2)
    else { return [] }
    for index in 0..<tagCount {
      let tag = directory + 2 + index * tagByteCount
      guard let number = reader.number(at: tag, byteCount: 2) else { return [] }
      guard number == imagesTag else { continue }
      guard let byteCount = reader.number(at: tag + 4, byteCount: 4),
        let start = reader.number(at: tag + 8, byteCount: 4)
      else { return [] }
      let count = min(byteCount / imageByteCount, maxCount + 1)
      return (0..<count).dropFirst().compactMap { image(reader, at: start + $0 * imageByteCount) }
    }
    return []
  }

  private static func image(_ reader: TIFFReader, at start: Int) -> Image? {
    guard let attributes = reader.number(at: start, byteCount: 4),
      let byteCount = reader.number(at: start + 4, byteCount: 4),
      let offset = reader.number(at: start + 8, byteCount: 4)
    else { return nil }
    // The lower 24 bits are the purpose; the three above them the format, 0 for JPEG.
    let purpose = attributes & 0x7FF_FFFF
    return Image(mayBeGainMap: purpose == 0 || purpose == gainMapPurpose, byteCount: byteCount, offset: offset)
  }

  /// The size in bytes of the segment that `segment` returns.
  static let segmentByteCount = 4 + 4 + 8 + 2 + 3 * tagByteCount + 4 + 2 * imageByteCount

  /// Returns the segment that lists an image and one behind it, from its marker on.
  /// - `position`: the position of the segment in the file.
  /// - `byteCount`: the size of the first image, behind which the second one follows.
  static func segment(at position: Int, byteCount: Int, mapByteCount: Int) -> [UInt8] {
    func bytes(_ numbers: [(value: Int, byteCount: Int)]) -> [UInt8] {
      numbers.flatMap { TIFFReader.bytes($0.value, byteCount: $0.byteCount, isBig: true) }
    }
    let name = JPEGSegments.Kind.multiPicture.name
    let listPosition = position + 4 + name.count
    let entries = 8 + 2 + 3 * tagByteCount + 4
    let head = [0xFF, JPEGSegments.Kind.multiPicture.marker] + bytes([(segmentByteCount - 2, 2)]) + name
    let directory = Array("MM\0*".utf8) + bytes([(8, 4), (3, 2)])
    let version = bytes([(0xB000, 2), (7, 2), (4, 4)]) + Array("0100".utf8)
    let count = bytes([(0xB001, 2), (4, 2), (1, 4), (2, 4)])
    let images = bytes([(imagesTag, 2), (7, 2), (2 * imageByteCount, 4), (entries, 4), (0, 4)])
    let first = bytes([(0x3_0000, 4), (byteCount, 4), (0, 4), (0, 4)])  // the primary image
    let second = bytes([(0, 4), (mapByteCount, 4), (byteCount - listPosition, 4), (0, 4)])
    return head + directory + version + count + images + first + second
  }
}
