import ImageCodecs
import TestSupport
import Testing

@Suite("Files with several images")
struct SeveralImagesTests {
  /// A multi-picture index with images of these types, the first of which is the file itself.
  private static func index(_ types: [Int], isBig: Bool) -> [UInt8] {
    func number(_ value: Int, _ byteCount: Int) -> [UInt8] {
      isBig ? Container.bigEndian(value, byteCount: byteCount) : Container.littleEndian(value, byteCount: byteCount)
    }
    let numbers: [(value: Int, byteCount: Int)] = [
      (8, 4), (2, 2), (0xB001, 2), (4, 2), (1, 4), (types.count, 4), (0xB002, 2), (7, 2), (16 * types.count, 4),
      (38, 4),
      (0, 4),
    ]
    var bytes = Array((isBig ? "MM\0*" : "II*\0").utf8)
    for (value, byteCount) in numbers { bytes += number(value, byteCount) }
    for type in types { for value in [type, 1000, 2000, 0] { bytes += number(value, 4) } }
    return bytes
  }

  private static func jpeg(_ name: String, index: [UInt8], count: Int = 1) -> [UInt8] {
    let body = Array("MPF\0".utf8) + index
    let segment = [0xFF, 0xE2] + Container.bigEndian(body.count + 2, byteCount: 2) + body
    let bytes = Fixture.bytes(name)
    return Array(bytes.prefix(2)) + [[UInt8]](repeating: segment, count: count).flatMap(\.self) + bytes.dropFirst(2)
  }

  @Test("of many indices in a JPEG only the first is kept, as libjpeg walks through them for each one more")
  func manyIndices() throws {
    func peak(_ count: Int) throws -> Int {
      let bytes = Self.jpeg("photo-arithmetic.jpg", index: Self.index([0x3_0000], isBig: true), count: count)
      let budget = ImageBudget(limit: 1 << 30)
      var decoder = try Decoder(
        format: .jpeg, limits: CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 0), budget: budget)
      #expect(try decoder.readHeader(bytes.span.bytes, isLast: true).value)
      return budget.peak
    }
    #expect(try peak(5000) == peak(1))
  }

  @Test(
    "a JPEG warns of views and primary images, not of previews, gain maps and depth maps",
    arguments: [
      ([0x2003_0000, 0x4001_0001], false), ([0x3_0000, 0x1_0002], false), ([0x2003_0000, 0], false),
      ([0x3_0000, 0, 0x1_0001, 0], false), ([0x2002_0002, 0x2_0002], true), ([0x2_0001, 0x2_0001, 0x2_0001], true),
      ([0x3_0000, 0x1_0001, 0x2_0003], true), ([0x3_0000, 0x3_0000], true), ([0x2_0002], false), ([], false),
    ])
  func jpeg(types: [Int], isMissed: Bool) throws {
    // The last two are decoded by the library.
    for name in ["photo-420.jpg", "photo-progressive.jpg", "photo-cmyk.jpg", "photo-arithmetic.jpg"] {
      for isBig in [false, true] {
        let bytes = Self.jpeg(name, index: Self.index(types, isBig: isBig))
        for windowByteCount in [1, Int.max] {
          let warnings = try Pixels.decode(bytes, windowByteCount: windowByteCount).warnings
          #expect(warnings == (isMissed ? [.firstFrameOnly] : []), "\(name)")
        }
      }
    }
  }

  @Test("a damaged index of images is no warning, and does no harm", arguments: [UInt64](0..<4))
  func damagedIndex(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let index = Self.index([0x3_0000, 0x1_0001], isBig: seed % 2 == 0)
    for count in 0..<index.count - 16 {
      #expect(try Pixels.decode(Self.jpeg("photo-420.jpg", index: Array(index.prefix(count)))).warnings.isEmpty)
    }
    for _ in 0..<40 {
      var damaged = index
      damaged[Int.random(in: 4..<damaged.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
      _ = try Pixels.decode(Self.jpeg("photo-420.jpg", index: damaged))
    }
  }

  /// A TIFF whose directory is followed by others of the same strip, each with a kind of `NewSubfileType`.
  private static func tiff(_ kinds: [Int]) -> [UInt8] {
    var bytes = Container.tiff(
      width: 4, height: 4, bitDepth: 8, sampleCount: 1, photometric: 1, samples: [UInt8](repeating: 9, count: 16))
    let start = 8 + 16
    let count = Int(bytes[start])
    let entries = bytes[start + 2..<start + 2 + 12 * count]
    for kind in kinds {
      bytes.replaceSubrange(bytes.count - 4..<bytes.count, with: Container.littleEndian(bytes.count, byteCount: 4))
      bytes += Container.littleEndian(count + 1, byteCount: 2) + Container.littleEndian(254, byteCount: 2)
      bytes += Container.littleEndian(4, byteCount: 2) + Container.littleEndian(1, byteCount: 4)
      bytes += Container.littleEndian(kind, byteCount: 4) + entries + [0, 0, 0, 0]
    }
    return bytes
  }

  @Test(
    "a TIFF warns of pages, not of reduced versions and masks", .enabled(if: ImageFormat.tiff.isDecodable),
    arguments: [
      ([], false), ([0], true), ([2], true), ([1], false), ([4], false), ([1, 5, 1], false), ([1, 2], true),
      ([Int](repeating: 1, count: 40), false),
    ])
  func tiff(kinds: [Int], isMissed: Bool) throws {
    let pixels = try Pixels.decode(Self.tiff(kinds))
    #expect(pixels.mean == [9, 9, 9] && pixels.warnings == (isMissed ? [.firstFrameOnly] : []))
  }

  /// Returns the header of a file.
  private static func header(_ bytes: [UInt8], _ format: ImageFormat) throws -> ImageHeader {
    let limits = CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 0)
    var decoder = try Decoder(format: format, limits: limits, budget: ImageBudget(limit: 1 << 24))
    _ = try decoder.readHeader(bytes.span.bytes, isLast: true)
    return decoder.header
  }

  @Test(
    "pages of a TIFF are counted without reduced versions and masks, and can be chosen",
    .enabled(if: ImageFormat.tiff.isDecodable), arguments: [([], 1), ([0, 2, 0], 4), ([1, 0, 4, 1, 2], 3)])
  func pages(kinds: [Int], count: Int) throws {
    let file = Self.tiff(kinds)
    let header = try Self.header(file, .tiff)
    #expect(header.frameCount == count && header.hasPages == (count > 1) && !header.hasFrames)
    for index in -count..<count where count > 1 {
      let pixels = try Pixels.decode(file, frames: (index, 1))
      #expect(pixels.mean == [9, 9, 9])
      #expect(pixels.warnings == (index == 0 || index == -count ? [.firstFrameOnly] : []))
    }
    for index in [count, -count - 1] {
      let error = #expect(throws: CodecError.self) { _ = try Pixels.decode(file, frames: (index, 1)) }
      #expect(error?.code == .noFrame)
    }
  }

  @Test("directories of a TIFF that form a loop are no pages", .enabled(if: ImageFormat.tiff.isDecodable))
  func loop() throws {
    for count in 1...5 {
      var file = Self.tiff([Int](repeating: 0, count: count))
      file.replaceSubrange(file.count - 4..<file.count, with: Container.littleEndian(24, byteCount: 4))
      let header = try Self.header(file, .tiff)
      #expect(header.frameCount == 0 && !header.hasPages)
      let error = #expect(throws: CodecError.self) { _ = try Pixels.decode(file, frames: (1, 1)) }
      #expect(error?.code == .unsupported)
    }
  }
}
