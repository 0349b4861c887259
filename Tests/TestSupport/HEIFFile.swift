/// An AVIF or HEIC file built from items, properties and references.
package struct HEIFFile {
  /// A box with its type and body.
  package struct Box: Hashable, Sendable {
    package var type: String
    package var body: [UInt8]

    package init(_ type: String, _ body: [UInt8]) {
      self.type = type
      self.body = body
    }

    package static func size(_ width: Int, _ height: Int) -> Box {
      Box("ispe", [0, 0, 0, 0] + Container.bigEndian(width, byteCount: 4) + Container.bigEndian(height, byteCount: 4))
    }

    /// Returns a rotation by quarter turns counterclockwise.
    package static func rotation(quarters: UInt8) -> Box { Box("irot", [quarters]) }

    /// Returns a mirror property; `axis` 0 is a vertical axis, 1 a horizontal one.
    package static func mirror(axis: UInt8) -> Box { Box("imir", [axis]) }

    /// Returns a clean-aperture property that crops around the center.
    package static func crop(width: Int, height: Int) -> Box {
      Box("clap", [width, 1, height, 1, 0, 1, 0, 1].flatMap { Container.bigEndian($0, byteCount: 4) })
    }

    /// Returns a color property with code points of ITU-T H.273.
    package static func color(primaries: UInt8, transfer: UInt8, matrix: UInt8 = 6, isFullRange: Bool = true) -> Box {
      Box("colr", Array("nclx".utf8) + [0, primaries, 0, transfer, 0, matrix, isFullRange ? 0x80 : 0])
    }

    package static let alpha = Box(
      "auxC", [0, 0, 0, 0] + Array("urn:mpeg:mpegB:cicp:systems:auxiliary:alpha".utf8) + [0])
  }

  /// The coded content of an item: its type, its data, and the properties required to decode it.
  package struct Coded: Sendable {
    package var type: String
    package var data: [UInt8]
    package var properties: [Box]
  }

  private struct Item {
    var type: String
    var data: [UInt8]
    var properties: [Box]
    var essential: Bool
  }

  private let brand: String
  private var items: [Item] = []
  private var references: [(type: String, from: Int, to: [Int])] = []
  /// Properties of items behind the end of the list of these, where no reader finds them.
  package var uncounted: [(item: Int, property: Box)] = []

  /// Whether references have sizes of 8 bytes.
  package var hasLongReferences = false
  /// The sizes of the first of two pieces in which the data of items is stored.
  package var pieces: [Int: Int] = [:]

  /// Creates an empty file; the first item added becomes the primary image.
  package init(brand: String) { self.brand = brand }

  /// Adds an item and returns its number.
  ///
  /// `isEssential` marks the properties as essential, which means that a reader must support them.
  package mutating func add(
    _ type: String, data: [UInt8] = [], properties: [Box] = [], isEssential: Bool = true
  ) -> Int {
    items.append(Item(type: type, data: data, properties: properties, essential: isEssential))
    return items.count
  }

  package mutating func add(_ coded: Coded, properties: [Box] = [], isEssential: Bool = true) -> Int {
    add(coded.type, data: coded.data, properties: coded.properties + properties, isEssential: isEssential)
  }

  package mutating func refer(_ type: String, from: Int, to: [Int]) { references.append((type, from, to)) }

  package static func grid(rows: Int, columns: Int, width: Int, height: Int) -> [UInt8] {
    [0, 0, UInt8(rows - 1), UInt8(columns - 1)] + Container.bigEndian(width, byteCount: 2)
      + Container.bigEndian(height, byteCount: 2)
  }

  /// Returns the data of an overlay of `count` images, all at the same position.
  package static func overlay(width: Int, height: Int, count: Int, x: Int = 0, y: Int = 0) -> [UInt8] {
    let place = Container.bigEndian(x, byteCount: 2) + Container.bigEndian(y, byteCount: 2)
    return [0, 0, 0, 0, 0, 0, 0, 0, 255, 255] + Container.bigEndian(width, byteCount: 2)
      + Container.bigEndian(height, byteCount: 2) + repeatElement(place, count: count).joined()
  }

  /// The bytes of the file; items with equal data share it.
  package var bytes: [UInt8] {
    let head = Self.box("ftyp", Array("\(brand)".utf8) + [0, 0, 0, 0] + Array("\(brand)mif1".utf8))
    let start = head.count + meta(dataStart: 0).count + 8
    var data: [UInt8] = []
    for (index, item) in items.enumerated() where place(index) == index { data += item.data }
    return head + meta(dataStart: start) + Self.box("mdat", data)
  }

  /// Returns the index of the first item with the same data.
  private func place(_ index: Int) -> Int {
    items[index].data.count < 64 ? index : items.firstIndex { $0.data == items[index].data } ?? index
  }

  private func meta(dataStart: Int) -> [UInt8] {
    var starts: [Int] = []
    var next = dataStart
    for index in items.indices {
      let first = place(index)
      starts.append(first < index ? starts[first] : next)
      next += first < index ? 0 : items[index].data.count
    }
    var properties: [Box] = []
    var numbers: [Box: Int] = [:]
    for box in items.flatMap(\.properties) + uncounted.map(\.property) where numbers[box] == nil {
      properties.append(box)
      numbers[box] = properties.count
    }
    let associations = items.enumerated().flatMap { (index: Int, item: Item) -> [UInt8] in
      two(index + 1) + [UInt8(item.properties.count)]
        + item.properties.map { UInt8(numbers[$0]!) | (item.essential ? 0x80 : 0) }
    }
    let behind = uncounted.flatMap { (item: Int, property: Box) -> [UInt8] in
      two(item) + [1, UInt8(numbers[property]!)]
    }
    let entries = items.enumerated().flatMap { (index: Int, item: Item) -> [UInt8] in
      Self.box("infe", [2, 0, 0, 0] + two(index + 1) + [0, 0] + Array(item.type.utf8) + [0])
    }
    let lists = references.flatMap { reference -> [UInt8] in
      let body = two(reference.from) + two(reference.to.count) + reference.to.flatMap(two)
      return hasLongReferences ? Self.longBox(reference.type, body) : Self.box(reference.type, body)
    }
    let places = items.indices.flatMap { (index: Int) -> [UInt8] in
      let (start, count) = (starts[index], items[index].data.count)
      guard let first = pieces[index + 1] else { return two(index + 1) + [0, 0, 0, 1] + four(start) + four(count) }
      return two(index + 1) + [0, 0, 0, 2] + four(start) + four(first) + four(start + first) + four(count - first)
    }
    let container = Self.box("ipco", properties.flatMap { Self.box($0.type, $0.body) })
    return Self.box(
      "meta",
      [0, 0, 0, 0] + Self.box("hdlr", [0, 0, 0, 0, 0, 0, 0, 0] + Array("pict".utf8) + [UInt8](repeating: 0, count: 13))
        + Self.box("pitm", [0, 0, 0, 0] + two(1)) + Self.box("iinf", [0, 0, 0, 0] + two(items.count) + entries)
        + (lists.isEmpty ? [] : Self.box("iref", [0, 0, 0, 0] + lists))
        + Self.box("iprp", container + Self.box("ipma", [0, 0, 0, 0] + four(items.count) + associations + behind))
        + Self.box("iloc", [0, 0, 0, 0, 0x44, 0] + two(items.count) + places))
  }

  private static func box(_ type: String, _ body: [UInt8]) -> [UInt8] {
    Container.bigEndian(body.count + 8, byteCount: 4) + Array(type.utf8) + body
  }

  private static func longBox(_ type: String, _ body: [UInt8]) -> [UInt8] {
    [0, 0, 0, 1] + Array(type.utf8) + Container.bigEndian(body.count + 16, byteCount: 8) + body
  }

  private func two(_ value: Int) -> [UInt8] { Container.bigEndian(value, byteCount: 2) }

  private func four(_ value: Int) -> [UInt8] { Container.bigEndian(value, byteCount: 4) }
}

extension HEIFFile.Coded {
  /// Extracts the primary image of a fixture that uses only the simplest form of each box.
  ///
  /// Properties whose types are in `without` are omitted.
  package init(fixture name: String, without: Set<String> = []) {
    let file = Fixture.bytes(name)
    func number(_ bytes: [UInt8], _ at: Int, _ count: Int) -> Int {
      bytes[at..<at + count].reduce(0) { $0 << 8 | Int($1) }
    }
    func boxes(_ bytes: [UInt8], from start: Int = 0) -> [HEIFFile.Box] {
      var result: [HEIFFile.Box] = []
      var at = start
      while at + 8 <= bytes.count {
        let size = number(bytes, at, 4)
        result.append(
          HEIFFile.Box(String(decoding: bytes[at + 4..<at + 8], as: UTF8.self), Array(bytes[at + 8..<at + size])))
        at += size
      }
      return result
    }
    func body(_ type: String, in list: [HEIFFile.Box]) -> [UInt8] { list.first { $0.type == type }!.body }
    let meta = boxes(body("meta", in: boxes(file)), from: 4)
    let primary = number(body("pitm", in: meta), 4, 2)
    let entry = boxes(body("iinf", in: meta), from: 6).first { number($0.body, 4, 2) == primary }!
    let container = boxes(body("iprp", in: meta))
    let properties = boxes(body("ipco", in: container))
    let associations = body("ipma", in: container)
    var at = 8
    while number(associations, at, 2) != primary { at += 3 + Int(associations[at + 2]) }
    let indices = associations[at + 3..<at + 3 + Int(associations[at + 2])].map { Int($0 & 0x7F) - 1 }
    let places = body("iloc", in: meta)
    at = 8
    let (baseAt, baseByteCount) = (places[0] > 0 ? 6 : 4, Int(places[5] >> 4))
    let head = baseAt + baseByteCount
    while number(places, at, 2) != primary { at += head + 2 + 8 * number(places, at + head, 2) }
    let offset = number(places, at + baseAt, baseByteCount) + number(places, at + head + 2, 4)
    let count = number(places, at + head + 6, 4)
    self.init(
      type: String(decoding: entry.body[8..<12], as: UTF8.self), data: Array(file[offset..<offset + count]),
      properties: indices.map { properties[$0] }.filter { !without.contains($0.type) })
  }
}
