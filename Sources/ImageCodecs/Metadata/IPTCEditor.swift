/// Copies the datasets of IPTC-IIM that a result keeps, and adds texts.
///
/// Source: IPTC-NAA Information Interchange Model 4.2, sections 1.5 and 6.
struct IPTCEditor {
  /// The maximum size of all datasets, which fit in one segment of a JPEG.
  static let maxByteCount = 65_000
  private static let marker: UInt8 = 0x1C
  private static let record: UInt8 = 2

  private enum Dataset {
    static let title: UInt8 = 5
    static let copyright: UInt8 = 116
    static let description: UInt8 = 120
    /// A preview, its format and its version.
    static let preview: ClosedRange<UInt8> = 200...202
    /// The creator and the creator's title, the credit, the copyright, and whom to ask.
    static let rights: Set<UInt8> = [80, 85, 110, 116, 118]
  }

  let edit: MetadataEdit

  private var texts: [(dataset: UInt8, text: String, maxByteCount: Int)] {
    let texts = edit.texts
    return [
      (Dataset.title, texts.title, 64), (Dataset.copyright, texts.copyright, 128),
      (Dataset.description, texts.description, 2000),
    ].compactMap { dataset, text, maxByteCount in text.map { (dataset, $0, maxByteCount) } }
  }

  /// A dataset: its record, its number in the record, and its value.
  private struct Entry {
    var record: UInt8
    var dataset: UInt8
    var value: [UInt8]

    /// The dataset as stored.
    var bytes: [UInt8] {
      [IPTCEditor.marker, record, dataset, UInt8(value.count >> 8), UInt8(value.count & 255)] + value
    }
  }

  /// Returns the edited datasets; empty if there were none, as texts are also in XMP, which more readers know.
  func edited(_ datasets: [UInt8]) -> [UInt8] {
    let replaced = Set(texts.map(\.dataset))
    var entries = Self.entries(datasets).filter { entry in
      entry.record != Self.record
        || !(replaced.contains(entry.dataset) || Dataset.preview.contains(entry.dataset))
    }.filter { edit.allowsValue(byteCount: $0.value.count) }
    if edit.keepsOnlyRights {
      entries.removeAll { !Self.statesRights($0) }
      // The encoding alone states nothing.
      if entries.allSatisfy({ $0.record != Self.record }) { return [] }
    }
    guard !entries.isEmpty else { return [] }
    if !texts.isEmpty { entries = Self.inUTF8(entries) }
    entries += texts.map { dataset, text, maxByteCount in
      Entry(record: Self.record, dataset: dataset, value: Self.prefix(text, byteCount: maxByteCount))
    }
    let output = entries.flatMap(\.bytes)
    return output.count <= Self.maxByteCount ? output : []
  }

  /// Whether a dataset is kept with the rights: it states them, or is the encoding of texts.
  private static func statesRights(_ entry: Entry) -> Bool {
    entry.record == record ? Dataset.rights.contains(entry.dataset) : entry.record == 1 && entry.dataset == 90
  }

  /// Returns the datasets up to the first one that is malformed or extended, as previews are.
  private static func entries(_ datasets: [UInt8]) -> [Entry] {
    var entries: [Entry] = []
    var rest = datasets[...]
    while rest.count >= 5, rest[rest.startIndex] == marker {
      let start = rest.startIndex
      let byteCount = Int(rest[start + 3]) << 8 | Int(rest[start + 4])
      guard byteCount < 0x8000, byteCount <= rest.count - 5 else { break }
      let value = Array(rest[start + 5..<start + 5 + byteCount])
      entries.append(Entry(record: rest[start + 1], dataset: rest[start + 2], value: value))
      rest = rest[(start + 5 + byteCount)...]
    }
    return entries
  }

  /// Returns the datasets with texts in UTF-8, which the first one declares; other texts are taken as Latin-1.
  private static func inUTF8(_ entries: [Entry]) -> [Entry] {
    let declaration = Entry(record: 1, dataset: 90, value: [0x1B, 0x25, 0x47])
    return [declaration]
      + entries.filter { $0.record != 1 || $0.dataset != 90 }.map { entry in
        guard entry.record == record, String(validating: entry.value, as: UTF8.self) == nil else { return entry }
        let text = String(String.UnicodeScalarView(entry.value.map { Unicode.Scalar($0) }))
        return Entry(record: record, dataset: entry.dataset, value: prefix(text, byteCount: 0x7FFF))
      }
  }

  /// Returns the longest beginning of whole characters with at most `byteCount` bytes.
  private static func prefix(_ text: String, byteCount: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    for character in text {
      let next = Array(String(character).utf8)
      if bytes.count + next.count > byteCount { break }
      bytes += next
    }
    return bytes
  }
}
