import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Damaged files")
struct DamageTests {
  private static let strict = ProcessingConfiguration(preferredFormat: .png, alwaysEncode: true)
  private static let tolerant = ProcessingConfiguration(preferredFormat: .png, tolerateDamage: true)

  /// Returns the start of the first scan's entropy-coded bytes.
  private static func scanStart(_ jpeg: [UInt8]) -> Int {
    var at = 2
    while jpeg[at + 1] != 0xDA { at += 2 + Int(jpeg[at + 2]) << 8 + Int(jpeg[at + 3]) }
    return at + 2 + Int(jpeg[at + 2]) << 8 + Int(jpeg[at + 3])
  }

  /// Returns the position of a restart marker's 0xFF byte in the first scan.
  private static func restart(_ number: UInt8, in jpeg: [UInt8]) -> Int {
    (scanStart(jpeg)..<jpeg.count - 1).first { jpeg[$0] == 0xFF && jpeg[$0 + 1] == 0xD0 + number }!
  }

  /// Returns the file with an invalid marker at `percent` of the scan's bytes.
  private static func withStrayMarker(_ name: String, percent: Int) -> [UInt8] {
    var bytes = Fixture.bytes(name)
    let start = scanStart(bytes)
    let at = start + (bytes.count - start) * percent / 100
    (bytes[at], bytes[at + 1]) = (0xFF, 0x37)
    return bytes
  }

  /// Returns the file with a wrong CRC in the last chunk of this type.
  private static func withWrongCRC(_ type: String, _ name: String) -> [UInt8] {
    var bytes = Fixture.bytes(name)
    let at = (0..<bytes.count - 4).last { Array(bytes[$0..<$0 + 4]) == Array(type.utf8) }!
    let byteCount = bytes[at - 4..<at].reduce(0) { $0 << 8 | Int($1) }
    bytes[at + 4 + byteCount] ^= 0x55
    return bytes
  }

  /// Returns the row that the warning names; `nil` without a warning.
  private static func damagedRow(_ report: ProcessingReport) -> Int? {
    report.messages.lazy.compactMap { warning -> Int? in
      guard warning.hasPrefix("the image is damaged from row ") else { return nil }
      return warning.split(separator: " ").lazy.compactMap { Int($0) }.first
    }.first
  }

  /// Processes a damaged file; checks that it is refused unless damage is tolerated, and that window sizes do not
  /// matter.
  private func processDamaged(_ bytes: [UInt8]) throws -> (pixels: Pixels, row: Int) {
    let error = #expect(throws: PipelineError.self) { try process(bytes, Self.strict) }
    #expect(error?.code == .corruptImage)
    let result = try process(bytes, Self.tolerant)
    for windowByteCount in [1, 7, 4096] {
      let other = try process(bytes, Self.tolerant, windowByteCount: windowByteCount)
      #expect(other.bytes == result.bytes && other.report.messages == result.report.messages)
    }
    return (try Pixels.decode(result.bytes), try #require(Self.damagedRow(result.report)))
  }

  private func whole(_ name: String) throws -> Pixels {
    try Pixels.decode(try process(Fixture.bytes(name), Self.strict).bytes)
  }

  private func rowsDiffering(_ ours: Pixels, _ theirs: Pixels) -> [Int] {
    let stride = ours.layout[0].width * ours.format.pixelByteCount
    return (0..<ours.layout[0].height).filter { row in
      ours.planes[0][row * stride..<(row + 1) * stride] != theirs.planes[0][row * stride..<(row + 1) * stride]
    }
  }

  @Test("a JPEG resumes at the next restart marker", arguments: [0x37, 0xD7, 0xD1, 0x00] as [UInt8])
  func restarts(code: UInt8) throws {
    var bytes = Fixture.bytes("photo-restart.jpg")
    let at = Self.restart(2, in: bytes) + 6
    (bytes[at], bytes[at + 1]) = (0xFF, code)
    // Codes that consist only of ones are in no table.
    if code == 0 {
      for offset in stride(from: 0, to: 12, by: 2) { (bytes[at + offset], bytes[at + offset + 1]) = (0xFF, 0) }
    }
    let (pixels, row) = try processDamaged(bytes)
    let differing = rowsDiffering(pixels, try whole("photo-restart.jpg"))
    let first = try #require(differing.first)
    let last = try #require(differing.last)
    #expect(row - 2 <= first && first < row + 16)
    #expect(last < pixels.layout[0].height - 32, "what comes behind the next restart marker is as it was")
  }

  @Test("a JPEG with a missing restart marker loses only that interval")
  func missingRestart() throws {
    var bytes = Fixture.bytes("photo-restart.jpg")
    bytes.removeSubrange(Self.restart(1, in: bytes)...Self.restart(1, in: bytes) + 1)
    let (pixels, row) = try processDamaged(bytes)
    let differing = rowsDiffering(pixels, try whole("photo-restart.jpg"))
    #expect(try #require(differing.first) >= row - 2)
    #expect(try #require(differing.last) < pixels.layout[0].height - 32)
  }

  @Test(
    "the rest is gray without restart markers",
    arguments: ["photo-420.jpg", "photo-444.jpg", "photo-gray.jpg", "photo-cmyk.jpg"])
  func noRestarts(name: String) throws {
    let (pixels, row) = try processDamaged(Self.withStrayMarker(name, percent: 50))
    let reference = try whole(name)
    let height = pixels.layout[0].height
    #expect(row > height / 8 && row < height * 7 / 8)
    #expect(rowsDiffering(pixels, reference).allSatisfy { $0 >= row - 1 })
    let gray = name == "photo-cmyk.jpg" ? 64 : 128  // half of each CMY ink, and black on top
    for channel in pixels.color(x: 3, y: height - 1) { #expect(abs(channel - Double(gray)) <= 2) }
  }

  @Test("damage is handled at every scale", arguments: 1...8)
  func scales(scale: Int) throws {
    let bytes = Self.withStrayMarker("photo-restart.jpg", percent: 50)
    #expect(throws: CodecError.self) { try Pixels.decode(bytes, scale: scale) }
    let pixels = try Pixels.decode(bytes, scale: scale, toleratesDamage: true)
    let reference = try Pixels.decode(Fixture.bytes("photo-restart.jpg"), scale: scale)
    #expect(pixels.damagedRow != nil && pixels.planes != reference.planes)
    #expect(pixels.planes[0].suffix(64) == reference.planes[0].suffix(64))
  }

  @Test("a progressive JPEG loses the rest of the damaged scan", arguments: [1, 2, 4, 8])
  func progressive(scale: Int) throws {
    var bytes = Fixture.bytes("photo-progressive.jpg")
    let scans = (0..<bytes.count - 1).filter { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xDA }
    for at in scans[1] + 60..<scans[1] + 90 { bytes[at] = at % 2 == 0 ? 0xFF : 0 }
    let reference = try Pixels.decode(Fixture.bytes("photo-progressive.jpg"), scale: scale)
    for windowByteCount in [1, 4096, .max] {
      let pixels = try Pixels.decode(bytes, windowByteCount: windowByteCount, scale: scale, toleratesDamage: true)
      for (ours, theirs) in zip(pixels.mean, reference.mean) { #expect(abs(ours - theirs) < 6) }
      if scale > 1 {  // which needs only the first scan
        #expect(pixels.damagedRow != nil)
        #expect(throws: CodecError.self) { try Pixels.decode(bytes, scale: scale) }
      }
    }
  }

  private static let withoutLoss =
    "the file is damaged, which was tolerated; all of it was decoded, but pixels may be wrong"

  @Test(
    "a chunk of a PNG, also inside an ICO, is used despite a wrong CRC",
    arguments: [
      ("IHDR", "photo.png"), ("IDAT", "photo.png"), ("IEND", "photo.png"), ("PLTE", "palette.png"),
      ("IDAT", "pngsuite-basi2c08.png"), ("IHDR", "icon-png.ico"), ("IDAT", "icon-png.ico"),
    ])
  func wrongCRC(type: String, name: String) throws {
    let bytes = Self.withWrongCRC(type, name)
    let error = #expect(throws: PipelineError.self) { try process(bytes, Self.strict) }
    #expect(error?.code == .corruptImage)
    for windowByteCount in [1, 4096, .max] {
      let result = try process(bytes, Self.tolerant, windowByteCount: windowByteCount)
      #expect(result.report.messages == [Self.withoutLoss])
      #expect(try Pixels.decode(result.bytes).planes == whole(name).planes)
    }
    // A rendition that does not tolerate damage fails next to one that does.
    let (_, results) = try process(bytes, [Self.strict, Self.tolerant])
    #expect(throws: PipelineError.self) { try results[0].get() }
    #expect(try results[1].get().report.messages == [Self.withoutLoss])
  }

  @Test("the rows before the damage of a PNG inside an ICO are returned")
  func compressedDataOfIcon() throws {
    let png = Fixture.bytes("photo.png")
    let size = Container.littleEndian(png.count, byteCount: 4)
    let icon: [UInt8] = [0, 0, 1, 0, 1, 0, 240, 160, 0, 0, 1, 0, 32, 0] + size + [22, 0, 0, 0] + png
    var bytes = icon
    for at in bytes.count / 2..<bytes.count / 2 + 40 { bytes[at] ^= 0xFF }
    let (pixels, row) = try processDamaged(bytes)
    let reference = try Pixels.decode(try process(icon, Self.strict).bytes)
    #expect(row > 8 && rowsDiffering(pixels, reference).allSatisfy { $0 > 8 })
  }

  @Test("a PNG's rows before the damage are returned")
  func compressedData() throws {
    var bytes = Fixture.bytes("photo.png")
    for at in bytes.count / 2..<bytes.count / 2 + 40 { bytes[at] ^= 0xFF }
    let (pixels, row) = try processDamaged(bytes)
    let reference = try whole("photo.png")
    let height = pixels.layout[0].height
    #expect(row > height / 8 && row < height * 7 / 8)
    #expect(rowsDiffering(pixels, reference).allSatisfy { $0 >= row - 1 })
    for channel in pixels.color(x: 3, y: height - 1) { #expect(abs(channel - 128) <= 2) }
  }

  @Test("a WebP's rows before the damage are returned")
  func webp() throws {
    // The chunk's length field is smaller than the chunk.
    var bytes = Fixture.bytes("lossless.webp")
    bytes.replaceSubrange(16..<20, with: Container.littleEndian(bytes.count / 2, byteCount: 4))
    let (pixels, row) = try processDamaged(bytes)
    let reference = try whole("lossless.webp")
    #expect(row > 0)
    #expect(pixels.color(x: 5, y: 5) == reference.color(x: 5, y: 5))
    for channel in pixels.color(x: 3, y: pixels.layout[0].height - 1) { #expect(abs(channel - 128) <= 2) }
  }

  @Test(
    "rows before the damage are returned, however many of a strip they are",
    arguments: ["text.ppm", "photo.hdr"])
  func rows(name: String) throws {
    var bytes = Fixture.bytes(name)
    for at in bytes.count * 3 / 4..<bytes.count * 3 / 4 + 40 { bytes[at] = 2 }
    let (pixels, row) = try processDamaged(bytes)
    #expect(row > 0)
    #expect(rowsDiffering(pixels, try whole(name)).allSatisfy { $0 >= row - 1 })
  }

  @Test("a small lossless WebP's rows before the damage are returned, whatever the windows")
  func smallWebP() throws {
    let small = ProcessingConfiguration(preferredFormat: .webp, webp: WebPOptions(isLossless: true))
    let bytes = try process(Fixture.bytes("pngsuite-tbbn3p08.png"), small).bytes
    #expect(bytes.count < 4096)
    var delivered = 0
    for at in stride(from: bytes.count / 3, to: bytes.count, by: 7) {
      var damaged = bytes
      damaged[at] ^= 0x10
      // Most flips only change pixels.
      guard (try? process(damaged, Self.strict)) == nil else { continue }
      let result = try? process(damaged, Self.tolerant)
      for windowByteCount in [1, 7, 300] {
        #expect((try? process(damaged, Self.tolerant, windowByteCount: windowByteCount))?.bytes == result?.bytes)
      }
      delivered += result.map { Self.damagedRow($0.report) == nil ? 0 : 1 } ?? 0
    }
    #expect(delivered > 0)
  }

  @Test("a rendition that does not tolerate damage fails, unless its rows are intact, while one that does succeeds")
  func renditions() throws {
    let bytes = Self.withStrayMarker("photo-420.jpg", percent: 60)
    var top = Self.strict
    top.crop = Crop(unit: .pixels, x: 0, y: 0, width: 100, height: 20)
    let (_, results) = try process(bytes, [Self.strict, Self.tolerant, top])
    let error = #expect(throws: PipelineError.self) { try results[0].get() }
    #expect(error?.code == .corruptImage)
    #expect(try results[1].get().bytes == (try process(bytes, Self.tolerant).bytes))
    #expect(try results[2].get().bytes == (try process(Fixture.bytes("photo-420.jpg"), top).bytes))
  }

  @Test("damaged references of a PNG show no memory that was not written", arguments: [1, 7, 4096, .max])
  func references(windowByteCount: Int) throws {
    // 50 zeros, then a match of 258 bytes that begins 4097 bytes before it, in fixed Huffman codes.
    var codes = [(1, 1), (1, 2)] + (0..<50).map { _ in (0b0000_1100, 8) } + [(0b1010_0011, 8), (0b00011, 5), (0, 11)]
    codes += (0..<20).map { _ in (0b0000_1100, 8) }
    let bits = codes.flatMap { code in (0..<code.1).map { code.0 >> $0 & 1 } }
    let data = stride(from: 0, to: bits.count, by: 8).map { at in
      bits[at..<min(at + 8, bits.count)].reversed().reduce(UInt8(0)) { $0 << 1 | UInt8($1) }
    }
    let header = Container.png(width: 20, height: 40, bitDepth: 8, colorType: 0, rows: []).prefix(33)
    let bytes =
      Array(header) + Container.pngChunk("IDAT", [0x78, 1] + data + [0, 0, 0, 0]) + Container.pngChunk("IEND", [])
    guard let result = try? process(bytes, Self.tolerant, windowByteCount: windowByteCount) else { return }
    let pixels = try Pixels.decode(result.bytes)
    #expect(pixels.planes[0].allSatisfy { [0, 128].contains($0) })
  }

  @Test("an image without any decodable rows is still an error")
  func nothing() {
    var png = Fixture.bytes("photo.png")
    let at = (0..<png.count - 4).first { Array(png[$0..<$0 + 4]) == Array("IDAT".utf8) }!
    for offset in 4..<60 { png[at + offset] = 0xFF }
    for bytes in [Self.withStrayMarker("photo-420.jpg", percent: 0), png] {
      let error = #expect(throws: PipelineError.self) { try process(bytes, Self.tolerant) }
      #expect(error?.code == .corruptImage)
    }
  }

  @Test(
    "an intact file is unaffected by the flag",
    arguments: [
      "photo-420.jpg", "photo-restart.jpg", "photo-progressive.jpg", "photo-cmyk.jpg", "photo.png", "palette.png",
      "photo.webp", "lossless.webp",
    ])
  func wholeFiles(name: String) throws {
    let (ours, theirs) = (
      try process(Fixture.bytes(name), Self.tolerant), try process(Fixture.bytes(name), Self.strict)
    )
    #expect(ours.bytes == theirs.bytes && ours.report.messages == theirs.report.messages)
  }
}
