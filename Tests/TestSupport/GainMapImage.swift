/// A JPEG with a gain map behind its image, as cameras and libultrahdr write it, and its parts again.
package struct GainMapImage: Sendable {
  /// The way in which the map is described.
  package enum Style: CaseIterable, Sendable { case adobe, iso, apple }

  /// The way in which the file lists the map.
  package enum List: CaseIterable, Sendable {
    /// In a segment of the multi-picture format.
    case multiPicture
    /// In a directory of GContainer, whose properties are attributes.
    case directory
    /// In a directory with other prefixes, whose properties are elements.
    case directoryOfElements
  }

  package struct Segment: Hashable, Sendable {
    package var marker: UInt8
    /// The position of the marker.
    package var offset: Int
    package var body: [UInt8]
  }

  package var image: [UInt8]
  package var map: [UInt8]
  package var styles: Set<Style>
  /// Other segments of the image.
  package var segments: [(marker: UInt8, body: [UInt8])] = []
  /// The amounts added to the position and the size in the list of images.
  package var (offsetError, byteCountError) = (0, 0)
  package var purpose = 0
  package var lists: Set<List> = [.multiPicture]
  /// The amount added to the size in the directory.
  package var directoryError = 0
  /// The bytes between the image and its map, and their number as the directory states it.
  package var (padding, statedPadding): ([UInt8], Int) = ([], 0)
  /// The size of an item that the directory lists in front of the map, in the padding.
  package var otherItem: Int?

  package init(image: [UInt8], map: [UInt8], styles: Set<Style>) {
    (self.image, self.map, self.styles) = (image, map, styles)
  }

  private static let xmpName = Array("http://ns.adobe.com/xap/1.0/\0".utf8)
  private static let isoName = Array("urn:iso:std:iso:ts:21496:-1\0".utf8)

  private static func packet(_ attributes: String, _ content: String = "") -> [UInt8] {
    let rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    let description = "<rdf:Description rdf:about=\"\" \(attributes)>\(content)</rdf:Description>"
    let text =
      "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF xmlns:rdf=\"\(rdf)\">\(description)</rdf:RDF></x:xmpmeta>"
    return xmpName + Array(text.utf8)
  }

  private static let adobe = "xmlns:hdrgm=\"http://ns.adobe.com/hdr-gain-map/1.0/\" hdrgm:Version=\"1.0\""

  /// The segments that describe the map, without their markers and lengths.
  package var descriptions: [(marker: UInt8, body: [UInt8])] {
    var all: [(marker: UInt8, body: [UInt8])] = []
    if styles.contains(.adobe) {
      all.append((0xE1, Self.packet("\(Self.adobe) hdrgm:GainMapMax=\"2.5\" hdrgm:HDRCapacityMax=\"2.5\"")))
    }
    if styles.contains(.iso) {
      let numbers: [Int] = [0, 1, 5, 2, 0, 1, 5, 2, 1, 1, 1, 64, 1, 64]
      let head: [UInt8] = [0, 0, 0, 0, 0x40]
      all.append((0xE2, Self.isoName + head + numbers.flatMap { Container.bigEndian($0, byteCount: 4) }))
    }
    if styles.contains(.apple) {
      let namespace = "xmlns:HDRGainMap=\"http://ns.apple.com/HDRGainMap/1.0/\""
      all.append((0xE1, Self.packet("\(namespace) HDRGainMap:HDRGainMapVersion=\"65536\"")))
    }
    return all
  }

  private func declarations(mapByteCount: Int) -> [(marker: UInt8, body: [UInt8])] {
    var all: [(marker: UInt8, body: [UInt8])] = []
    let directory = directory(mapByteCount: mapByteCount)
    if styles.contains(.adobe) || !directory.isEmpty { all.append((0xE1, Self.packet(Self.adobe, directory))) }
    if styles.contains(.iso) { all.append((0xE2, Self.isoName + [0, 0, 0, 0])) }
    return all
  }

  /// The directory of GContainer; empty without one.
  private func directory(mapByteCount: Int) -> String {
    let isElements = lists.contains(.directoryOfElements)
    guard isElements || lists.contains(.directory) else { return "" }
    let (directory, item) = isElements ? ("a", "b") : ("Container", "Item")
    func entry(_ properties: [(name: String, value: String)]) -> String {
      let texts = properties.map { name, value in
        isElements ? "<\(item):\(name)>\(value)</\(item):\(name)>" : " \(item):\(name)=\"\(value)\""
      }.joined()
      let whole =
        isElements
        ? "<\(directory):Item rdf:parseType='Resource'>\(texts)</\(directory):Item>" : "<\(directory):Item\(texts)/>"
      return "<rdf:li rdf:parseType='Resource'>\(whole)</rdf:li>"
    }
    let primary = [("Semantic", "Primary"), ("Mime", "image/jpeg"), ("Length", "0"), ("Padding", "\(statedPadding)")]
    let other = otherItem.map { entry([("Semantic", "Depth"), ("Length", "\($0)")]) } ?? ""
    let map = [("Mime", "image/jpeg"), ("Length", "\(mapByteCount + directoryError)"), ("Semantic", "GainMap")]
    let namespace = "http://ns.google.com/photos/1.0/container/"
    return "<\(directory):Directory xmlns:\(directory)='\(namespace)' xmlns:\(item)='\(namespace)item/'><rdf:Seq>"
      + "\(entry(primary))\(other)\(entry(map))</rdf:Seq></\(directory):Directory>"
  }

  /// The size in bytes of the image with its declarations.
  package var imageByteCount: Int { parts.image.count }

  /// The whole file.
  package var bytes: [UInt8] { parts.image + padding + parts.map }

  private var parts: (image: [UInt8], map: [UInt8]) {
    let map = Container.jpeg(map, adding: descriptions)
    let others = declarations(mapByteCount: map.count) + segments
    guard lists.contains(.multiPicture) else { return (Container.jpeg(image, adding: others), map) }
    func list(_ byteCount: Int) -> [UInt8] {
      let start = 2 + 8
      func long(_ value: Int) -> [UInt8] { Container.bigEndian(value, byteCount: 4) }
      let numbers = [
        0x3_0000, byteCount, 0, 0, purpose, map.count + byteCountError,
        byteCount + padding.count - start + offsetError, 0,
      ]
      let images = numbers.flatMap(long)
      let tag: [UInt8] = [0, 1, 0xB0, 2, 0, 7] + long(images.count) + long(26)
      return Array("MPF\0MM\0*".utf8) + long(8) + tag + long(0) + images
    }
    let image = Container.jpeg(self.image, adding: [(0xE2, list(0))] + others)
    return (Container.jpeg(self.image, adding: [(0xE2, list(image.count))] + others), map)
  }

  // MARK: Parts

  /// The segments of a JPEG before its first scan.
  package static func segments(of bytes: [UInt8]) -> [Segment] {
    var (segments, position): ([Segment], Int) = ([], 2)
    while position + 4 <= bytes.count, bytes[position] == 0xFF, bytes[position + 1] != 0xDA {
      let length = Int(bytes[position + 2]) << 8 | Int(bytes[position + 3])
      segments.append(
        Segment(
          marker: bytes[position + 1], offset: position,
          body: Array(bytes[position + 4..<min(bytes.count, position + 2 + length)])))
      position += 2 + length
    }
    return segments
  }

  /// The image and the map of a file whose list has two images, of which the second one ends the file; otherwise `nil`.
  package static func parts(of bytes: [UInt8]) -> (image: [UInt8], map: [UInt8])? {
    let name = Array("MPF\0".utf8)
    guard let list = segments(of: bytes).first(where: { $0.marker == 0xE2 && $0.body.starts(with: name) }) else {
      return nil
    }
    let images = list.body.suffix(32)
    func long(_ index: Int) -> Int { images.dropFirst(4 * index).prefix(4).reduce(0) { $0 << 8 | Int($1) } }
    let start = list.offset + 8 + long(6)
    guard long(0) == 0x3_0000, long(1) == start, long(2) == 0, start + long(5) == bytes.count else { return nil }
    return (Array(bytes[..<start]), Array(bytes[start...]))
  }
}
