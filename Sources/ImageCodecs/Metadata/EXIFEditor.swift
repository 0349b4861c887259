/// Rebuilds an EXIF block with the tags that a result keeps.
///
/// The block is parsed to a list of values and written anew, so that nothing between the values survives: thumbnails, maker
/// notes, and what a writer left behind. Sources: CIPA DC-008 (Exif 3.0), section 4.6; TIFF 6.0, section 2.
struct EXIFEditor {
  /// The maximum size of a block, that of a JPEG segment.
  static let maxByteCount = 65_527
  /// The maximum number of tags of a directory.
  private static let maxEntryCount = 500

  let edit: MetadataEdit

  /// The value of a tag, in the byte order of the block.
  private struct Entry {
    var tag: Int
    var type: Int
    var count: Int
    var value: [UInt8]

    static func short(_ tag: Int, _ value: Int, isBig: Bool) -> Entry {
      Entry(tag: tag, type: 3, count: 1, value: TIFFReader.bytes(value, byteCount: 2, isBig: isBig))
    }

    static func long(_ tag: Int, _ value: Int, isBig: Bool) -> Entry {
      Entry(tag: tag, type: 4, count: 1, value: TIFFReader.bytes(value, byteCount: 4, isBig: isBig))
    }
  }

  private enum Tag {
    static let exifDirectory = 0x8769
    static let gpsDirectory = 0x8825
    static let imageDescription = 0x010E
    static let imageTitle = 0xA436
    static let windowsTitle = 0x9C9B
    static let windowsComment = 0x9C9C
    static let copyright = 0x8298
    static let colorSpace = 0xA001
    static let width = 0xA002
    static let height = 0xA003
  }

  /// Tags that describe the file's data and its colors, or that refer to data elsewhere in it; thumbnails of Windows;
  /// the position of maps (GeoTIFF); content credentials (C2PA); and orientation, which was applied.
  private static let structural: [ClosedRange<Int>] = [
    0x00FE...0x0103, 0x0106...0x010A, 0x0111...0x0112, 0x0115...0x0119, 0x011C...0x011C, 0x0120...0x0125,
    0x0129...0x0129, 0x012D...0x012D, 0x013D...0x0145, 0x014A...0x0156, 0x015A...0x015B, 0x0190...0x0190,
    0x0200...0x0214, 0x02BC...0x02BC, 0x5012...0x503B, 0x830E...0x830E, 0x83BB...0x83BB, 0x8480...0x8482,
    0x85D8...0x85D8, 0x8606...0x8606, 0x8649...0x8649, 0x8769...0x8769, 0x8773...0x8773, 0x87AF...0x87B1,
    0x8825...0x8825, 0x9101...0x9102, 0x9214...0x9214, 0x927C...0x927C, 0x935C...0x935C, 0xA005...0xA005,
    0xA214...0xA214, 0xA480...0xA481, 0xC4A5...0xC4A5, 0xC634...0xC634, 0xCD41...0xCD41, 0xEA1C...0xEA1C,
  ]

  /// The owner and the serial numbers of body and lens, and the identifiers of the image.
  private static let serialNumbers: Set<Int> = [
    0xA420, 0xA430, 0xA431, 0xA435, 0xC62F, 0xC65D, 0xC68B, 0xFDE8, 0xFDE9,
  ]

  /// Returns the edited block; empty if it has no tags.
  func edited(_ block: [UInt8]) -> [UInt8] {
    let reader = TIFFReader(block)
    var image: [Entry] = []
    var exif: [Entry] = []
    var position: [Entry] = []
    if let reader {
      let first = Self.entries(reader, at: reader.number(at: 4, byteCount: 4))
      image = kept(first).filter { !isReplaced($0.tag) }
      let photograph = Self.entries(reader, at: Self.pointer(Tag.exifDirectory, in: first, reader))
      exif = corrected(kept(photograph).filter { !isReplaced($0.tag) }, isBig: reader.isBig)
      if edit.keepsLocation {
        position = kept(Self.entries(reader, at: Self.pointer(Tag.gpsDirectory, in: first, reader)))
      }
    }
    set(Tag.imageDescription, edit.texts.description, in: &image)
    set(Tag.copyright, edit.texts.copyright, in: &image)
    let isBig = reader?.isBig ?? false
    let written = Self.written(image: image, exif: exif, position: position, isBig: isBig)
    return written.count <= Self.maxByteCount ? written : []
  }

  /// Returns whether a text of the configuration takes the place of a tag that is not written.
  private func isReplaced(_ tag: Int) -> Bool {
    switch tag {
    case Tag.imageTitle, Tag.windowsTitle: edit.texts.title != nil
    case Tag.windowsComment: edit.texts.description != nil
    default: false
    }
  }

  private func kept(_ entries: [Entry]) -> [Entry] {
    entries.filter { entry in
      !Self.structural.contains { $0.contains(entry.tag) }
        && (edit.keepsSerialNumbers || !Self.serialNumbers.contains(entry.tag))
        && edit.allowsValue(byteCount: entry.value.count)
    }
  }

  /// Corrects the size and the color space, where they are stated.
  private func corrected(_ entries: [Entry], isBig: Bool) -> [Entry] {
    entries.compactMap { entry in
      switch entry.tag {
      case Tag.width: edit.width.map { Entry.long(entry.tag, $0, isBig: isBig) }
      case Tag.height: edit.height.map { Entry.long(entry.tag, $0, isBig: isBig) }
      case Tag.colorSpace: Entry.short(entry.tag, edit.isSRGB ? 1 : 0xFFFF, isBig: isBig)
      default: entry
      }
    }
  }

  private func set(_ tag: Int, _ text: String?, in entries: inout [Entry]) {
    guard let text else { return }
    entries.removeAll { $0.tag == tag }
    let value = Array(text.utf8) + [0]
    entries.append(Entry(tag: tag, type: 2, count: value.count, value: value))
  }

  // MARK: Reading

  /// Returns the entries of the directory at `offset` whose values lie in the block, of at most its size in total.
  private static func entries(_ reader: TIFFReader, at offset: Int?) -> [Entry] {
    guard let offset, let count = reader.number(at: offset, byteCount: 2) else { return [] }
    var entries: [Entry] = []
    var seen: Set<Int> = []
    var left = reader.bytes.count
    for index in 0..<min(count, maxEntryCount) {
      let place = offset + 2 + 12 * index
      guard let tag = reader.number(at: place, byteCount: 2), let type = reader.number(at: place + 2, byteCount: 2),
        let valueCount = reader.number(at: place + 4, byteCount: 4), let size = byteCounts[type],
        valueCount > 0, valueCount <= left / size
      else { continue }
      let byteCount = valueCount * size
      let start = byteCount <= 4 ? place + 8 : reader.number(at: place + 8, byteCount: 4)
      guard let start, let value = reader.slice(at: start, byteCount: byteCount), seen.insert(tag).inserted else {
        continue
      }
      left -= byteCount
      entries.append(Entry(tag: tag, type: type, count: valueCount, value: value))
    }
    return entries
  }

  /// The size of a value in bytes, by its type; offsets of directories (13) are no values.
  private static let byteCounts: [Int: Int] = [
    1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 129: 1,
  ]

  private static func pointer(_ tag: Int, in entries: [Entry], _ reader: TIFFReader) -> Int? {
    entries.first { $0.tag == tag && $0.value.count == 4 }.map { TIFFReader.number($0.value[...], isBig: reader.isBig) }
  }

  // MARK: Writing

  private static func written(image: [Entry], exif: [Entry], position: [Entry], isBig: Bool) -> [UInt8] {
    if image.isEmpty && exif.isEmpty && position.isEmpty { return [] }
    let pointerCount = (exif.isEmpty ? 0 : 1) + (position.isEmpty ? 0 : 1)
    let first = 8
    let second = first + byteCount(image, adding: pointerCount)
    let third = second + byteCount(exif, adding: 0)
    var image = image
    if !exif.isEmpty { image.append(Entry.long(Tag.exifDirectory, second, isBig: isBig)) }
    if !position.isEmpty { image.append(Entry.long(Tag.gpsDirectory, third, isBig: isBig)) }
    var bytes: [UInt8] = isBig ? [0x4D, 0x4D, 0, 42] : [0x49, 0x49, 42, 0]
    bytes += TIFFReader.bytes(first, byteCount: 4, isBig: isBig)
    for directory in [image, exif, position] { append(directory, to: &bytes, isBig: isBig) }
    return bytes
  }

  /// Returns the size of a directory and its values with `pointerCount` more entries; 0 for an empty one.
  private static func byteCount(_ entries: [Entry], adding pointerCount: Int) -> Int {
    if entries.isEmpty && pointerCount == 0 { return 0 }
    return entries.reduce(6 + 12 * pointerCount) { sum, entry in
      sum + 12 + (entry.value.count <= 4 ? 0 : (entry.value.count + 1) / 2 * 2)
    }
  }

  private static func append(_ entries: [Entry], to bytes: inout [UInt8], isBig: Bool) {
    if entries.isEmpty { return }
    func number(_ value: Int, _ byteCount: Int) -> [UInt8] {
      TIFFReader.bytes(value, byteCount: byteCount, isBig: isBig)
    }
    let start = bytes.count + 6 + 12 * entries.count
    var values: [UInt8] = []
    bytes += number(entries.count, 2)
    for entry in entries.sorted(by: { $0.tag < $1.tag }) {
      bytes += number(entry.tag, 2) + number(entry.type, 2) + number(entry.count, 4)
      if entry.value.count <= 4 {
        bytes += entry.value + [UInt8](repeating: 0, count: 4 - entry.value.count)
      } else {
        bytes += number(start + values.count, 4)
        values += entry.value + [UInt8](repeating: 0, count: entry.value.count % 2)
      }
    }
    bytes += [0, 0, 0, 0] + values
  }
}
