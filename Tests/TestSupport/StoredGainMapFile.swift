/// An HEIC or AVIF file with a gain map among its items, as cameras write it.
package struct StoredGainMapFile: Sendable {
  /// The way in which the map is described.
  package enum Style: Sendable, Hashable {
    /// As ISO 21496-1 specifies, with this metadata.
    case iso(metadata: [UInt8])
    /// As Apple does; `nil` without the headroom in XMP.
    case apple(headroom: Double?)
  }

  package var `extension`: String
  package var style: Style
  /// The number of tiles side by side of the map; 0 for a map without tiles.
  package var tileCount = 0
  /// Transforms of the image, and of its map.
  package var (transforms, mapTransforms): ([HEIFFile.Box], [HEIFFile.Box]) = ([], [])
  /// Properties of the map behind the end of the list of properties.
  package var uncounted: [HEIFFile.Box] = []
  /// The EXIF block of the image; empty without one.
  package var exif: [UInt8] = []
  /// Bytes of the coded map that are left out at its end.
  package var missingByteCount = 0

  /// - `extension`: that of the fixtures that are the image and the map.
  package init(_ extension: String, _ style: Style) { (self.extension, self.style) = (`extension`, style) }

  private static let name = Array("urn:com:apple:photo:2020:aux:hdrgainmap".utf8)

  /// The metadata of ISO 21496-1, from the versions on: a headroom and a gain of 2.5 stops.
  package static let metadata: [UInt8] = {
    let numbers: [Int] = [0, 1, 5, 2, 0, 1, 5, 2, 1, 1, 1, 64, 1, 64]
    return [0, 0, 0, 0, 0x40] + numbers.flatMap { Container.bigEndian($0, byteCount: 4) }
  }()

  private static func packet(headroom: Double) -> [UInt8] {
    let rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    return Array(
      ("<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF xmlns:rdf=\"\(rdf)\"><rdf:Description rdf:about=\"\" "
        + "xmlns:HDRGainMap=\"http://ns.apple.com/HDRGainMap/1.0/\">"
        + "<HDRGainMap:HDRGainMapVersion>131072</HDRGainMap:HDRGainMapVersion>"
        + "<HDRGainMap:HDRGainMapHeadroom>\(headroom)</HDRGainMap:HDRGainMapHeadroom>"
        + "</rdf:Description></rdf:RDF></x:xmpmeta>").utf8)
  }

  /// Returns an EXIF block with the two numbers of Apple's maker note, in thousandths.
  package static func exif(headroom: Int, gain: Int) -> [UInt8] {
    func number(_ value: Int, _ byteCount: Int) -> [UInt8] { Container.bigEndian(value, byteCount: byteCount) }
    func entry(_ tag: Int, type: Int, count: Int, _ value: Int) -> [UInt8] {
      number(tag, 2) + number(type, 2) + number(count, 4) + number(value, 4)
    }
    let values = 14 + 2 + 2 * 12 + 4
    let note =
      Array("Apple iOS\0\0\u{01}MM".utf8) + number(2, 2) + entry(33, type: 10, count: 1, values)
      + entry(48, type: 10, count: 1, values + 8) + number(0, 4) + number(headroom, 4) + number(1000, 4)
      + number(gain, 4) + number(1000, 4)
    let directory = 8 + 2 + 12 + 4
    let place = directory + 2 + 12 + 4
    return Array("MM\0*".utf8) + number(8, 4) + number(1, 2) + entry(0x8769, type: 4, count: 1, directory)
      + number(0, 4) + number(1, 2) + entry(0x927C, type: 7, count: note.count, place) + number(0, 4) + note
  }

  /// The size of a tile of the map, which has no chroma.
  package static let mapSize = (width: 120, height: 80)

  package var bytes: [UInt8] {
    var file = HEIFFile(brand: self.extension)
    // 4x4 tiles, so that the image is larger than its map.
    let tile = HEIFFile.Coded(fixture: "photo.\(self.extension)")
    let size = tile.properties.first { $0.type == "ispe" }?.body ?? []
    func number(_ at: Int) -> Int { size[at..<at + 4].reduce(0) { $0 << 8 | Int($1) } }
    let (width, height, count) = (4 * number(4), 4 * number(8), 16)
    let image = file.add(
      "grid", data: HEIFFile.grid(rows: 4, columns: 4, width: width, height: height),
      properties: [.size(width, height)] + transforms)
    file.refer("dimg", from: image, to: (0..<count).map { _ in file.add(tile) })
    let map = addMap(to: &file)
    file.uncounted = uncounted.map { (map, $0) }
    switch style {
    case .iso(let metadata): file.refer("dimg", from: file.add("tmap", data: [0] + metadata), to: [image, map])
    case .apple(let headroom):
      file.refer("auxl", from: map, to: [image])
      if let headroom { file.refer("cdsc", from: file.add("mime", data: Self.packet(headroom: headroom)), to: [map]) }
    }
    if !exif.isEmpty { file.refer("cdsc", from: file.add("Exif", data: [0, 0, 0, 0] + exif), to: [image]) }
    return file.bytes
  }

  private func addMap(to file: inout HEIFFile) -> Int {
    var coded = HEIFFile.Coded(fixture: "gray.\(self.extension)")
    coded.data.removeLast(missingByteCount)
    var properties = mapTransforms
    if case .apple = style { properties.append(HEIFFile.Box("auxC", [0, 0, 0, 0] + Self.name + [0])) }
    guard tileCount > 0 else { return file.add(coded, properties: properties) }
    let (width, height) = (Self.mapSize.width * tileCount, Self.mapSize.height)
    let grid = file.add(
      "grid", data: HEIFFile.grid(rows: 1, columns: tileCount, width: width, height: height),
      properties: [.size(width, height)] + properties)
    file.refer("dimg", from: grid, to: (0..<tileCount).map { _ in file.add(coded) })
    return grid
  }
}
