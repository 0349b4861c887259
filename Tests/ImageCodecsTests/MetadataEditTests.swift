import TestSupport
import Testing

@testable import ImageCodecs

@Suite("Edited metadata")
struct MetadataEditTests {
  private static let everything = MetadataEdit(
    keepsEXIF: true, keepsXMP: true, keepsIPTC: true, keepsLocation: true, keepsSerialNumbers: true)

  /// Returns a TIFF block with these directories: the first one, and those that it refers to by a tag.
  static func exif(
    _ first: [(tag: Int, type: Int, value: [UInt8])], _ others: [(tag: Int, entries: [(Int, Int, [UInt8])])] = [],
    isBig: Bool = true
  ) -> [UInt8] {
    func number(_ value: Int, _ count: Int) -> [UInt8] {
      isBig ? Container.bigEndian(value, byteCount: count) : Container.littleEndian(value, byteCount: count)
    }
    let sizes = [1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 7: 1]
    func directory(_ entries: [(Int, Int, [UInt8])], at start: Int) -> [UInt8] {
      var (table, values) = (number(entries.count, 2), [UInt8]())
      for (tag, type, value) in entries {
        let place = start + 6 + 12 * entries.count + values.count
        let isShort = value.count <= 4
        table += number(tag, 2) + number(type, 2) + number(value.count / (sizes[type] ?? 1), 4)
        table += isShort ? value + [UInt8](repeating: 0, count: 4 - value.count) : number(place, 4)
        values += isShort ? [] : value
      }
      return table + [0, 0, 0, 0] + values
    }
    var entries =
      first.map { ($0.tag, $0.type, $0.value) } + others.map { ($0.tag, 4, [UInt8](repeating: 0, count: 4)) }
    var start = 8 + directory(entries, at: 8).count
    var tail: [UInt8] = []
    for (index, other) in others.enumerated() {
      entries[first.count + index].2 = number(start, 4)
      let bytes = directory(other.entries, at: start)
      tail += bytes
      start += bytes.count
    }
    return (isBig ? [0x4D, 0x4D, 0, 42] : [0x49, 0x49, 42, 0]) + number(8, 4) + directory(entries, at: 8) + tail
  }

  private static func holds(_ bytes: [UInt8], _ text: String) -> Bool {
    let wanted = Array(text.utf8)
    return bytes.indices.dropLast(max(0, wanted.count - 1)).contains { bytes[$0...].starts(with: wanted) }
  }

  static func photograph(isBig: Bool = true) -> [UInt8] {
    func short(_ value: Int) -> [UInt8] {
      isBig ? Container.bigEndian(value, byteCount: 2) : Container.littleEndian(value, byteCount: 2)
    }
    return exif(
      [
        (0x010F, 2, Array("Kamerawerk\0".utf8)), (0x0112, 3, short(6)), (0x0201, 4, [0, 0, 0, 8]),
        (0x8298, 2, Array("Anna Beispiel\0".utf8)), (0x8482, 2, Array("8.5417 47.3769\0".utf8)),
        (0xCD41, 7, Array("a manifest".utf8)),
      ],
      [
        (
          0x8769,
          [
            (0x9003, 2, Array("2024:01:02 03:04:05\0".utf8)), (0x927C, 7, Array("secret notes".utf8)),
            (0xA001, 3, short(1)), (0xA002, 3, short(4000)), (0xA003, 3, short(3000)),
            (0xA431, 2, Array("SN-12345\0".utf8)),
          ]
        ),
        (0x8825, [(1, 2, Array("N\0".utf8)), (2, 5, Array("latitude of 24 bytes....".utf8))]),
      ], isBig: isBig)
  }

  @Test("EXIF keeps its tags, without what no longer holds and what is not named", arguments: [true, false])
  func exif(isBig: Bool) {
    let source = ImageMetadata(exif: Self.photograph(isBig: isBig))
    var edit = MetadataEdit(keepsEXIF: true, width: 640, height: 480, isSRGB: false)
    let plain = edit.edited(source).exif
    for text in ["Kamerawerk", "Anna Beispiel", "2024:01:02 03:04:05"] { #expect(Self.holds(plain, text)) }
    for text in ["secret notes", "SN-12345", "latitude", "8.5417 47.3769", "a manifest"] {
      #expect(!Self.holds(plain, text), "\(text)")
    }
    #expect(Self.value(0x0112, in: plain) == nil && Self.value(0x0201, in: plain) == nil)
    #expect(Self.value(0xA002, in: plain) == 640 && Self.value(0xA003, in: plain) == 480)
    #expect(Self.value(0xA001, in: plain) == 0xFFFF)
    (edit.keepsSerialNumbers, edit.keepsLocation, edit.width, edit.height) = (true, true, nil, nil)
    let whole = edit.edited(source).exif
    for text in ["SN-12345", "latitude of 24 bytes...."] { #expect(Self.holds(whole, text)) }
    #expect(Self.value(0xA002, in: whole) == nil)
    edit.keepsEXIF = false
    #expect(edit.edited(source).exif.isEmpty)
  }

  /// Returns the number of a tag in any directory; `nil` if there is no such tag.
  private static func value(_ tag: Int, in block: [UInt8]) -> Int? {
    let isBig = block.first == 0x4D
    func number(_ at: Int, _ count: Int) -> Int {
      let bytes = block[at..<at + count]
      return (isBig ? Array(bytes) : bytes.reversed()).reduce(0) { $0 << 8 | Int($1) }
    }
    func find(_ at: Int) -> Int? {
      for index in 0..<number(at, 2) {
        let entry = at + 2 + 12 * index
        let found = number(entry, 2)
        if found == tag { return number(entry + 8, number(entry + 2, 2) == 3 ? 2 : 4) }
        if found == 0x8769 || found == 0x8825, let value = find(number(entry + 8, 4)) { return value }
      }
      return nil
    }
    return find(number(4, 4))
  }

  private static let packet = Array(
    """
    <?xpacket begin="" id="W5M0"?><!-- a comment --><x:xmpmeta xmlns:x="adobe:ns:meta/">
    <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
    <rdf:Description rdf:about="" tiff:Orientation="6" exif:GPSLatitude='48,8N' xmp:CreatorTool="Werkzeug &amp; Co"
     aux:SerialNumber="SN-12345"><dc:title><rdf:Alt><rdf:li xml:lang="x-default">Old</rdf:li></rdf:Alt></dc:title>
    <xmp:Thumbnails><rdf:Alt><rdf:li>pixels</rdf:li></rdf:Alt></xmp:Thumbnails><exif:GPSAltitude/>
    <photoshop:City>Dorf</photoshop:City></rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>
    """.utf8)

  @Test("XMP keeps its properties, without what no longer holds and what is not named")
  func xmp() {
    let source = ImageMetadata(xmp: Self.packet)
    var edit = MetadataEdit(keepsXMP: true)
    let plain = edit.edited(source).xmp
    for text in ["Werkzeug &amp; Co", "Dorf", ">Old<"] { #expect(Self.holds(plain, text), "\(text)") }
    for text in ["Orientation", "GPS", "SN-12345", "pixels", "comment"] { #expect(!Self.holds(plain, text), "\(text)") }
    edit.texts = MetadataTexts(title: "Neu <&>", copyright: "© 2026")
    let titled = edit.edited(source).xmp
    #expect(Self.holds(titled, "Neu &lt;&amp;&gt;") && Self.holds(titled, "© 2026") && !Self.holds(titled, ">Old<"))
    edit.texts = MetadataTexts(title: "<\u{338}&\u{301}>\u{200D}")
    #expect(Self.holds(edit.edited(source).xmp, ">&lt;\u{338}&amp;\u{301}&gt;\u{200D}<"))
    (edit.keepsLocation, edit.keepsSerialNumbers) = (true, true)
    let whole = edit.edited(source).xmp
    for text in ["GPSLatitude='48,8N'", "<exif:GPSAltitude/>", "SN-12345"] {
      #expect(Self.holds(whole, text), "\(text)")
    }
  }

  @Test(
    "XMP keeps no position or serial number of drones, maps and observations",
    arguments: [
      "drone-dji:GpsLatitude", "drone-dji:GpsLongtitude", "drone-dji:AbsoluteAltitude", "drone-dji:DroneSerialNumber",
      "geo:lat", "geo:long", "dwc:decimalLatitude",
    ])
  func otherPositions(name: String) {
    let packet = "<rdf:RDF><rdf:Description \(name)='secret' drone-dji:FlightRollDegree='+1.5'/></rdf:RDF>"
    var edit = MetadataEdit(keepsXMP: true)
    let plain = edit.edited(ImageMetadata(xmp: Array(packet.utf8))).xmp
    #expect(!Self.holds(plain, "secret") && Self.holds(plain, "FlightRollDegree='+1.5'"))
    (edit.keepsLocation, edit.keepsSerialNumbers) = (true, true)
    #expect(Self.holds(edit.edited(ImageMetadata(xmp: Array(packet.utf8))).xmp, "\(name)='secret'"))
  }

  @Test("texts replace the titles and comments of Windows and of EXIF 3.0, too")
  func otherTexts() {
    let block = Self.exif(
      [
        (0x010F, 2, Array("Kamerawerk\0".utf8)), (0x9C9B, 1, Array("old title".utf8)),
        (0x9C9C, 1, Array("old comment".utf8)),
      ],
      [
        (
          0x8769,
          [(0xA436, 2, Array("older title\0".utf8)), (0xFDE9, 2, Array("SN-12345\0".utf8)), (0x9214, 3, [0, 9, 0, 9])]
        )
      ])
    var edit = MetadataEdit(keepsEXIF: true)
    let plain = edit.edited(ImageMetadata(exif: block)).exif
    for text in ["old title", "old comment", "older title"] { #expect(Self.holds(plain, text)) }
    #expect(!Self.holds(plain, "SN-12345") && Self.value(0x9214, in: plain) == nil)
    edit.texts = MetadataTexts(title: "new", description: "new")
    let titled = edit.edited(ImageMetadata(exif: block)).exif
    #expect(Self.holds(titled, "Kamerawerk") && !Self.holds(titled, "old"))
  }

  @Test(
    "XMP keeps no property of the default namespace that no longer holds or is not named",
    arguments: ["GPSLatitude", "Orientation", "ImageRegion"])
  func defaultNamespace(name: String) {
    let packet = "<rdf:RDF><\(name) xmlns='a'>secret</\(name)><City xmlns='b'>Dorf</City><Item xmlns='c'/></rdf:RDF>"
    let edited = MetadataEdit(keepsXMP: true).edited(ImageMetadata(xmp: Array(packet.utf8))).xmp
    #expect(!Self.holds(edited, "secret") && !Self.holds(edited, name))
    #expect(Self.holds(edited, ">Dorf<") && Self.holds(edited, "<Item "))
  }

  @Test(
    "XMP keeps nothing of a namespace that is left out, whatever its prefix",
    arguments: [
      "http://www.w3.org/2003/01/geo/wgs84_pos#", "http://ns.google.com/photos/1.0/depthmap/",
      "http://ns.adobe.com/hdr-gain-map/1.0/", "http://ns.apple.com/faceinfo/1.0/", "http://purl.org/dc/elements/1.1/",
    ])
  func otherPrefixes(namespace: String) {
    func edited(_ packet: String) -> [UInt8] {
      let edit = MetadataEdit(keepsXMP: true, texts: MetadataTexts(title: "new"))
      return edit.edited(ImageMetadata(xmp: Array(packet.utf8))).xmp
    }
    let declared = "xmlns:q='\(namespace)'"
    for packet in [
      "<rdf:RDF \(declared)><rdf:Description q:title='secret' photoshop:City='Dorf'/></rdf:RDF>",
      "<rdf:RDF><rdf:Description photoshop:City='Dorf' \(declared)><q:title>secret</q:title></rdf:Description></rdf:RDF>",
      "<rdf:RDF><title xmlns='\(namespace)'>secret</title><City>Dorf</City></rdf:RDF>",
    ] {
      let edited = edited(packet)
      #expect(!Self.holds(edited, "secret") && Self.holds(edited, "Dorf") && Self.holds(edited, ">new<"), "\(packet)")
    }
    // The declaration ends with its element, and another one may use its prefix.
    let inner = "<a \(declared)><b xmlns:q='x' q:title='inner'/></a>"
    let scoped = edited("<rdf:RDF>\(inner)<q:title>after</q:title><dc:c xmlns:dc='x'/></rdf:RDF>")
    #expect(Self.holds(scoped, "inner") && Self.holds(scoped, "after") && Self.holds(scoped, "dc:c"))
  }

  @Test("XMP with more namespaces than any program writes is left out")
  func manyNamespaces() {
    let declarations = (0..<300).map { " xmlns:n\($0)='n'" }.joined()
    let packet = "<rdf:RDF\(declarations)><City>Dorf</City></rdf:RDF>"
    #expect(MetadataEdit(keepsXMP: true).edited(ImageMetadata(xmp: Array(packet.utf8))).xmp.isEmpty)
  }

  @Test(
    "XMP that is not well-formed is left out",
    arguments: [
      "<a", "<a>", "</a>", "<a></b>", "<a b></a>", "<a b=c></a>", "<a b=\"<\"></a>", "<!DOCTYPE a><rdf:RDF></rdf:RDF>",
      "<rdf:RDF><![CDATA[x]]></rdf:RDF>", "<rdf:RDF><!-- x</rdf:RDF>", "<x></x>", "<rdf:RDF></rdf:RDF><", "\u{0}",
    ])
  func malformed(text: String) {
    #expect(MetadataEdit(keepsXMP: true).edited(ImageMetadata(xmp: Array(text.utf8))).xmp.isEmpty)
    let deep = String(repeating: "<a>", count: 100) + String(repeating: "</a>", count: 100)
    #expect(
      MetadataEdit(keepsXMP: true).edited(ImageMetadata(xmp: Array("<rdf:RDF>\(deep)</rdf:RDF>".utf8))).xmp.isEmpty)
  }

  @Test("IPTC keeps its datasets, without a preview, and with new texts")
  func iptc() {
    func dataset(_ number: UInt8, _ text: String) -> [UInt8] {
      [0x1C, 2, number, 0, UInt8(text.utf8.count)] + Array(text.utf8)
    }
    let source = ImageMetadata(iptc: dataset(90, "Dorf") + dataset(5, "Old") + dataset(202, "preview") + [0x1C, 2, 80])
    var edit = MetadataEdit(keepsIPTC: true)
    #expect(edit.edited(source).iptc == dataset(90, "Dorf") + dataset(5, "Old"))
    edit.texts = MetadataTexts(title: String(repeating: "ä", count: 40))
    let declaration: [UInt8] = [0x1C, 1, 90, 0, 3, 0x1B, 0x25, 0x47]
    let title = dataset(5, String(repeating: "ä", count: 32))
    #expect(edit.edited(source).iptc == declaration + dataset(90, "Dorf") + title)
    let latin = ImageMetadata(iptc: [0x1C, 2, 90, 0, 1, 0xFC])
    #expect(edit.edited(latin).iptc == declaration + dataset(90, "ü") + title)
    #expect(edit.edited(ImageMetadata()).iptc.isEmpty)
  }

  @Test("of XMP only creators and rights are kept, and nothing if there are none", arguments: [true, false])
  func rightsOfXMP(asAttributes: Bool) {
    let names =
      "xmlns:dc='http://purl.org/dc/elements/1.1/' xmlns:r='http://ns.adobe.com/xap/1.0/rights/' "
      + "xmlns:plus='http://ns.useplus.org/ldf/xmp/1.0/' xmlns:photoshop='http://ns.adobe.com/photoshop/1.0/'"
    let (page, city) = ("https://example.com/terms", "Dorf")
    let description =
      asAttributes
      ? "<rdf:Description rdf:about='' r:WebStatement='\(page)' photoshop:Credit='Agency' photoshop:City='\(city)' \(names)>"
      : "<rdf:Description rdf:about='' \(names)>text<r:WebStatement>\(page)</r:WebStatement>"
        + "<photoshop:City>\(city)</photoshop:City><photoshop:Credit>Agency</photoshop:Credit>"
    let packet = { (rights: String) in
      Array(
        ("<?secret?><x:xmpmeta xmlns:x='adobe:ns:meta/' x:xmptk='Tool'><x:other>more</x:other>"
          + "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>\(rights)<dc:title>Title</dc:title>"
          + "<dc:creator><rdf:Seq><rdf:li xml:lang='de'>Anna</rdf:li></rdf:Seq></dc:creator>"
          + "<plus:Licensor>Owner<photoshop:City>Hidden</photoshop:City></plus:Licensor>"
          + "<plus:CopyrightOwnerName>Heir</plus:CopyrightOwnerName></rdf:Description></rdf:RDF></x:xmpmeta>").utf8)
    }
    let edit = MetadataEdit(keepsXMP: true, keepsOnlyRights: true)
    let kept = edit.edited(ImageMetadata(xmp: packet(description))).xmp
    for text in [page, "Agency", "<rdf:li xml:lang='de'>Anna</rdf:li>", "Owner", "Heir", "xmlns:r="] {
      #expect(Self.holds(kept, text), "\(text)")
    }
    for text in [city, "Title", "secret", "more", "Tool", "text", "Hidden"] {
      #expect(!Self.holds(kept, text), "\(text)")
    }
    // A packet that is edited already stays as it is.
    #expect(edit.edited(ImageMetadata(xmp: kept)).xmp == kept)
    let without =
      "<x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>"
      + "<rdf:Description \(names) photoshop:City='Dorf'><dc:title>T</dc:title></rdf:Description></rdf:RDF></x:xmpmeta>"
    #expect(edit.edited(ImageMetadata(xmp: Array(without.utf8))).xmp.isEmpty)
  }

  @Test("of IPTC only creators and rights are kept, and nothing if there are none")
  func rightsOfIPTC() {
    func dataset(_ number: UInt8, _ text: String) -> [UInt8] {
      [0x1C, 2, number, 0, UInt8(text.utf8.count)] + Array(text.utf8)
    }
    let edit = MetadataEdit(keepsIPTC: true, keepsOnlyRights: true)
    let encoding: [UInt8] = [0x1C, 1, 90, 0, 3, 0x1B, 0x25, 0x47]
    let rights = dataset(80, "Anna") + dataset(116, "(c) Anna")
    #expect(
      edit.edited(ImageMetadata(iptc: encoding + dataset(90, "Dorf") + rights + dataset(5, "Title"))).iptc
        == encoding + rights)
    #expect(edit.edited(ImageMetadata(iptc: encoding + dataset(90, "Dorf"))).iptc.isEmpty)
  }

  @Test("texts are written without any metadata of the image")
  func texts() {
    let edit = MetadataEdit(texts: MetadataTexts(title: "A", copyright: "B", description: "C"))
    let result = edit.edited(ImageMetadata())
    #expect(Self.holds(result.xmp, ">A<") && Self.holds(result.xmp, ">B<") && Self.holds(result.xmp, ">C<"))
    #expect(Self.value(0x8298, in: result.exif) == Int(UInt8(ascii: "B")))
    #expect(MetadataEdit().edited(ImageMetadata()) == ImageMetadata())
  }

  @Test("damaged metadata causes neither traps nor growth", arguments: 0..<40)
  func damaged(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let iptc: [UInt8] = [0x1C, 2, 90, 0, 4] + Array("Dorf".utf8) + [0x1C, 2, 5, 0, 3] + Array("Old".utf8)
    for _ in 0..<50 {
      var source = ImageMetadata(exif: Self.photograph(isBig: seed % 2 == 0), xmp: Self.packet, iptc: iptc)
      for path in [\ImageMetadata.exif, \.xmp, \.iptc] { Self.damage(&source[keyPath: path], &random) }
      let result = Self.everything.edited(source)
      #expect(result.exif.count <= 3 * source.exif.count + 64 && result.xmp.count <= source.xmp.count)
      #expect(result.iptc.count <= source.iptc.count)
      // What was written is read again.
      #expect(Self.everything.edited(result).exif == result.exif)
      #expect(result.xmp.isEmpty || !Self.everything.edited(result).xmp.isEmpty)
    }
  }

  private static func damage(_ bytes: inout [UInt8], _ random: inout SeededGenerator) {
    for _ in 0..<Int.random(in: 1...6, using: &random) where !bytes.isEmpty {
      let place = Int.random(in: bytes.indices, using: &random)
      switch Int.random(in: 0..<4, using: &random) {
      case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
      case 1: bytes[place] = [0, 1, 255, 0x3C, 0x3E, 0x2F, 0x22].randomElement(using: &random) ?? 0
      case 2: bytes.insert(contentsOf: bytes[place..<min(bytes.count, place + 20)], at: place)
      default: bytes = Array(bytes.prefix(bytes.count - Int.random(in: 0...min(9, bytes.count), using: &random)))
      }
    }
  }

  @Test("many tags that share one value do not multiply it")
  func amplification() {
    let count = 400
    let block =
      [0x4D, 0x4D, 0, 42, 0, 0, 0, 8] + Container.bigEndian(count, byteCount: 2)
      + (0..<count).flatMap { index in
        Container.bigEndian(0xE000 + index, byteCount: 2) + [0, 7] + Container.bigEndian(5000, byteCount: 4)
          + Container.bigEndian(0, byteCount: 4)
      } + [UInt8](repeating: 7, count: 5000)
    #expect(Self.everything.edited(ImageMetadata(exif: block)).exif.count <= 2 * block.count)
  }

  @Test("large values are left out if images could be in them")
  func largeValues() {
    let text = String(repeating: "a", count: 1001)
    let packet =
      "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF xmlns:rdf=\"r\"><rdf:Description my:small=\"b\" my:large=\"\(text)\">"
      + "<my:other>\(text)</my:other><?my \(text)?></rdf:Description></rdf:RDF></x:xmpmeta>"
    var edit = MetadataEdit(keepsXMP: true)
    let whole = String(decoding: edit.edited(ImageMetadata(xmp: Array(packet.utf8))).xmp, as: UTF8.self)
    #expect(whole.contains(text))
    edit.maxValueByteCount = 1000
    let part = String(decoding: edit.edited(ImageMetadata(xmp: Array(packet.utf8))).xmp, as: UTF8.self)
    #expect(!part.contains(text.prefix(900)) && part.contains("my:small=\"b\""))
  }
}
