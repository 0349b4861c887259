import ImageCodecs
import TestSupport
import Testing

@Suite("LateOrientation")
struct LateOrientationTests {
  private static let photo = Fixture.bytes("photo.png")

  private static func find(_ file: [UInt8]) -> Orientation? { LateOrientation.find(in: file.span.bytes) }

  /// Returns the photo with eXIf chunks behind its data.
  private static func late(_ blocks: [UInt8]...) -> [UInt8] {
    Container.png(photo, appending: blocks.map { ("eXIf", $0) })
  }

  private static func decoder() throws -> Decoder {
    let limits = CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 0)
    return try Decoder(format: .png, limits: limits, budget: ImageBudget(limit: 1 << 24))
  }

  @Test("finds what the decoder reads from the same chunk before the image data", arguments: 0..<3000)
  func agreement(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var block = Container.exif(orientation: Int.random(in: 0...9, using: &random), isBig: .random(using: &random))
    for _ in 0..<Int.random(in: 0...2, using: &random) {
      block[Int.random(in: 0..<block.count, using: &random)] = .random(in: 0...14, using: &random)
    }
    block.removeLast(seed % 4 == 0 ? Int.random(in: 0...block.count, using: &random) : 0)
    var decoder = try Self.decoder()
    let early = Container.png(Self.photo, adding: [("eXIf", block)])
    #expect(try decoder.readHeader(early.span.bytes, isLast: true).value)
    #expect(Self.find(Self.late(block)) ?? .up == decoder.header.orientation, "\(block)")
  }

  @Test("finds nothing in other formats, before the image data, behind the end and in damaged chunks")
  func nothing() {
    let block = Container.exif(orientation: 6)
    #expect(Self.find(Self.late(block)) == .right)
    #expect(Self.find(Container.png(Self.late(block), adding: [("eXIf", Container.exif(orientation: 3))])) == nil)
    #expect(Self.find(Self.photo + Container.pngChunk("eXIf", block)) == nil)
    var damaged = Self.late(block)
    damaged[damaged.count - 13] ^= 1  // the checksum
    #expect(Self.find(damaged) == nil)
    #expect(Self.find(Self.late([])) == nil)
    #expect(Self.find(Fixture.bytes("orientation-6.jpg")) == nil && Self.find([]) == nil)
  }

  @Test("skips chunks that the decoder skips, and takes the first of the others")
  func first() {
    let blocks = [3, 6].map { Container.exif(orientation: $0) }
    #expect(Self.find(Self.late(blocks[0], blocks[1])) == .down)
    func padded(_ byteCount: Int) -> [UInt8] { blocks[0] + [UInt8](repeating: 0, count: byteCount - blocks[0].count) }
    #expect(Self.find(Self.late(padded(65536), blocks[1])) == .down)
    #expect(Self.find(Self.late(padded(65537), blocks[1])) == .right)
  }

  @Test(
    "reads nothing beyond the end, whatever lengths the file states", arguments: [0x7FFF_FFFF, 0x8000_0000, 1 << 16])
  func lengths(length: Int) {
    let stated = Container.bigEndian(length, byteCount: 4)
    for type in ["eXIf", "IDAT", "prVt"] {
      let file = Array(Self.photo.dropLast(12)) + stated + Array(type.utf8) + Container.exif(orientation: 6)
      #expect(Self.find(file) == nil, "\(type)")
      #expect(Self.find(Array(Self.photo.prefix(33)) + stated + Array(type.utf8)) == nil)
    }
    let file = Self.late(Container.exif(orientation: 6))
    for count in 0...file.count {
      #expect(Self.find(Array(file.prefix(count))) == (count < file.count - 12 ? nil : .right))
    }
  }

  @Test("gives up after many chunks")
  func manyChunks() {
    let empty = Container.pngChunk("prVt", [])
    for (count, expected) in [(1000, Orientation.right), (1 << 18, nil)] {
      let chunks = [UInt8]([[UInt8]](repeating: empty, count: count).joined())
      let rest = Self.late(Container.exif(orientation: 6)).dropFirst(33)
      let file = Array(Self.photo.prefix(33)) + chunks + Array(rest)
      #expect(Self.find(file) == expected)
    }
  }

  @Test("the decoder and the rewriter warn of another orientation than the one that was set", arguments: [3, 6])
  func warnings(orientation: Int) throws {
    let file = Self.late(Container.exif(orientation: 6))
    for value in [nil, orientation] {
      var decoder = try Self.decoder()
      let head = try decoder.readHeader(file.span.bytes, isLast: true)
      if let value { decoder.setOrientation(try #require(Orientation(rawValue: value))) }
      #expect(decoder.header.orientation.rawValue == value ?? 1)
      _ = try decoder.start(scale: 8)
      var offset = head.consumedByteCount
      while true {
        let progress = try decoder.read(file.span.bytes.extracting(droppingFirst: offset), isLast: true)
        offset += progress.consumedByteCount
        if progress.value == .done { break }
      }
      #expect(decoder.header.warnings == (value == 6 ? [] : [.lateOrientation]))
    }
  }
}
