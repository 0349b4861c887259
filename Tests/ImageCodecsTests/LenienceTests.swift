import ImageCodecs
import TestSupport
import Testing

/// Slightly irregular files that other decoders accept; they are decoded to the same image.
@Suite("Unusual files")
struct LenienceTests {
  private static func tga(_ pixels: [UInt8], isRunLength: Bool = false) -> [UInt8] {
    [0, 0, isRunLength ? 10 : 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 2, 0, 32, 0x20] + pixels
  }

  @Test("a TGA's fourth byte is alpha even if its header has no attribute bits", arguments: [1, 7, .max])
  func tgaAlpha(windowByteCount: Int) throws {
    let plain = Self.tga([1, 2, 3, 0, 4, 5, 6, 0, 7, 8, 9, 128, 10, 11, 12, 255])
    let packed = Self.tga([0x81, 1, 2, 3, 0, 0, 7, 8, 9, 128, 0x80, 10, 11, 12, 255], isRunLength: true)
    for bytes in [plain, packed] {
      let pixels = try Pixels.decode(bytes, windowByteCount: windowByteCount)
      #expect(pixels.format == .rgba8)
      #expect(
        [(0, 0), (1, 0), (0, 1), (1, 1)].map { pixels.sample(x: $0.0, y: $0.1, channel: 3) } == [0, 0, 128, 255])
      #expect(pixels.sample(x: 0, y: 1) == 9)
    }
    #expect(throws: CodecError.self) { try Pixels.decode(Array(plain.dropLast()), windowByteCount: windowByteCount) }
  }

  @Test("a TGA's fourth byte is ignored if it is zero in every pixel", arguments: [1, 7, .max])
  func tgaWithoutAlpha(windowByteCount: Int) throws {
    let bytes = Self.tga([1, 2, 3, 0, 4, 5, 6, 0, 7, 8, 9, 0, 10, 11, 12, 0])
    let pixels = try Pixels.decode(bytes, windowByteCount: windowByteCount)
    #expect(pixels.format == .rgb8 && pixels.planes == [[3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10]])
  }

  @Test("a TGA's fourth byte is alpha only if the extension area allows it", arguments: [1, 7, .max])
  func tgaExtension(windowByteCount: Int) throws {
    let pixels = Self.tga([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16])
    let packed = Self.tga([0x83, 1, 2, 3, 4], isRunLength: true)
    for image in [pixels, packed] {
      for (type, format): (UInt8, PixelFormat) in [(0, .rgb8), (1, .rgb8), (2, .rgb8), (3, .rgba8), (4, .rgba8)] {
        let area = Container.littleEndian(495, byteCount: 2) + [UInt8](repeating: 0, count: 492) + [type]
        let footer =
          Container.littleEndian(image.count, byteCount: 4) + [0, 0, 0, 0] + Array("TRUEVISION-XFILE.\0".utf8)
        let file = image + area + footer
        #expect(try Pixels.decode(file, windowByteCount: windowByteCount).format == format, "type \(type)")
        // A footer that refers to nothing is ignored.
        #expect(try Pixels.decode(image + footer, windowByteCount: windowByteCount).format == .rgba8)
      }
    }
  }

  /// Returns a GIF with these codes, each with its number of bits.
  private static func gif(codeSize: UInt8, _ codes: [(Int, Int)]) -> [UInt8] {
    var (bits, count) = (0, 0)
    for (code, size) in codes {
      bits |= code << count
      count += size
    }
    let data = Container.littleEndian(bits, byteCount: (count + 7) / 8)
    let head: [UInt8] = Array("GIF89a".utf8) + [2, 0, 1, 0, 0x80, 0, 0, 9, 9, 9, 200, 200, 200]
    return head + [0x2C, 0, 0, 0, 0, 2, 0, 1, 0, 0, codeSize, UInt8(data.count)] + data + [0, 0x3B]
  }

  @Test("a GIF's first codes may be longer than its pixels need", arguments: 9...11)
  func longCodes(size: Int) throws {
    let clear = 1 << size
    let codes = [(clear, size + 1), (1, size + 1), (0, size + 1), (clear + 1, size + 1)]
    let pixels = try Pixels.decode(Self.gif(codeSize: UInt8(size), codes))
    #expect(pixels.planes == [[200, 200, 200, 9, 9, 9]])
  }

  @Test("a GIF's codes may have no bits if there is only one color")
  func noCodes() throws {
    let pixels = try Pixels.decode(Self.gif(codeSize: 0, [(1, 1), (0, 1), (0, 1), (2, 2)]))
    #expect(pixels.planes == [[9, 9, 9, 9, 9, 9]])
    #expect(throws: CodecError.self) { try Pixels.decode(Self.gif(codeSize: 12, [(4096, 13)])) }
  }

  @Test("a PNG may lack its end, with a warning", arguments: [12, 9, 4, 1])
  func pngWithoutEnd(missingByteCount: Int) throws {
    let bytes = Fixture.bytes("photo.png")
    let whole = try Pixels.decode(bytes)
    for windowByteCount in [1, 4096, .max] {
      let pixels = try Pixels.decode(Array(bytes.dropLast(missingByteCount)), windowByteCount: windowByteCount)
      #expect(pixels.planes == whole.planes && pixels.warnings == [.damaged])
    }
  }

  @Test("a PNG with an invalid number of frames is a still image", arguments: [0, 1, 2, 0x7FFF_FFFF, 0x8000_0001])
  func frames(count: Int) throws {
    let body = Container.bigEndian(count, byteCount: 4) + [0, 0, 0, 0]
    let bytes = Container.png(Fixture.bytes("photo.png"), adding: [("acTL", body)])
    let limits = CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 0)
    var decoder = try Decoder(format: .png, limits: limits, budget: ImageBudget(limit: 1 << 24))
    #expect(try decoder.readHeader(bytes.span.bytes, isLast: true).value)
    let isValid = count > 0 && count < 0x8000_0000
    #expect(decoder.header.frameCount == (isValid ? count : 1))
    #expect(decoder.header.warnings == (!isValid ? [.damaged] : count > 1 ? [.firstFrameOnly] : []))
  }

  @Test("a PNG must not lack a byte of its image")
  func pngWithoutData() {
    for missing in [13, 16, 17, 300] {
      let error = #expect(throws: CodecError.self) {
        try Pixels.decode(Array(Fixture.bytes("photo.png").dropLast(missing)))
      }
      #expect(error?.code == .truncated)
    }
  }

  @Test("a truncated arithmetic JPEG is reported, and its rows so far are returned", arguments: [1, 4096, .max])
  func cutArithmetic(windowByteCount: Int) throws {
    let bytes = Fixture.bytes("photo-arithmetic.jpg")
    let cut = Array(bytes.prefix(bytes.count / 2))
    let error = #expect(throws: CodecError.self) { try Pixels.decode(cut, windowByteCount: windowByteCount) }
    #expect(error?.code == .truncated)
    let whole = try Pixels.decode(bytes)
    let part = try Pixels.decode(cut, windowByteCount: windowByteCount, toleratesTruncation: true)
    #expect(part.warnings.contains(.truncated))
    #expect(part.planes[0].prefix(240 * 32) == whole.planes[0].prefix(240 * 32))
    #expect(part.planes[0].last == 128)
  }

  private static func little(_ value: Int, _ byteCount: Int = 4) -> [UInt8] {
    Container.littleEndian(value, byteCount: byteCount)
  }

  /// Returns the header of a bitmap of 3x2 pixels, and its palette or masks.
  private static func bitmapHeader(
    height: Int = 2, bits: Int, compression: Int, colorCount: Int = 0, _ rest: [UInt8] = []
  ) -> [UInt8] {
    little(40) + little(3) + little(height) + little(1, 2) + little(bits, 2) + little(compression) + little(0)
      + little(0) + little(0) + little(colorCount) + little(0) + rest
  }

  @Test("a BMP's last run of a row may be padded, and its end may be missing", arguments: [1, 7, .max])
  func longRuns(windowByteCount: Int) throws {
    let palette: [UInt8] = [0, 0, 0, 0, 1, 2, 3, 0, 4, 5, 6, 0]
    let header = Self.bitmapHeader(bits: 8, compression: 1, colorCount: 3, palette)
    let start = Array("BM".utf8) + Self.little(0) + Self.little(0) + Self.little(14 + header.count) + header
    for data: [UInt8] in [
      [2, 1, 2, 2, 0, 0, 1, 2, 3, 0, 0, 1],  // both rows end with runs that are longer
      [2, 1, 2, 2, 0, 0, 1, 2, 2, 0, 9, 9, 9],  // no end, and other data
      [2, 1, 0, 4, 2, 1, 1, 1, 0, 0, 1, 2, 3, 0],
    ] {
      let pixels = try Pixels.decode(start + data, windowByteCount: windowByteCount)
      #expect(pixels.planes == [[3, 2, 1, 3, 2, 1, 6, 5, 4, 6, 5, 4, 0, 0, 0, 0, 0, 0]], "\(data)")
    }
    #expect(throws: CodecError.self) {
      try Pixels.decode(start + [3, 1, 1, 2, 0, 0, 3, 0, 0, 1], windowByteCount: windowByteCount)
    }
  }

  @Test("an icon's bitmap may have masks of its channels, and no mask of its shape", arguments: [1, 7, .max])
  func icons(windowByteCount: Int) throws {
    func icon(bits: Int, _ image: [UInt8]) -> [UInt8] {
      [0, 0, 1, 0, 1, 0, 3, 2, 0, 0, 1, 0] + Self.little(bits, 2) + Self.little(image.count) + Self.little(22) + image
    }
    let masks = Self.little(0xFF0000) + Self.little(0xFF00) + Self.little(0xFF)
    let colors: [[UInt8]] = [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12], [13, 14, 15], [16, 17, 18]]
    let deep: [UInt8] = colors.flatMap { (color: [UInt8]) -> [UInt8] in color + [255] }
    let masked = icon(bits: 32, Self.bitmapHeader(height: 4, bits: 32, compression: 3, masks) + deep)
    let rows: [UInt8] = Array(colors[0...2].joined()) + [0, 0, 0] + Array(colors[3...5].joined()) + [0, 0, 0]
    let plain = icon(bits: 24, Self.bitmapHeader(height: 4, bits: 24, compression: 0) + rows)
    let displayed: [UInt8] = (colors[3...5] + colors[0...2]).flatMap { (color: [UInt8]) -> [UInt8] in
      color.reversed() + [255]
    }
    for file in [masked, plain] {
      #expect(try Pixels.decode(file, windowByteCount: windowByteCount).planes == [displayed])
      #expect(throws: CodecError.self) { try Pixels.decode(Array(file.dropLast()), windowByteCount: windowByteCount) }
    }
  }

  @Test("a PAM's header may have blanks around its fields", arguments: [1, 7, .max])
  func blanks(windowByteCount: Int) throws {
    for header in [
      "P7\n  WIDTH  2\nHEIGHT\t1\nDEPTH 1\nMAXVAL 255\nENDHDR \n",
      "P7\r\nWIDTH 2\r\nHEIGHT 1\r\nDEPTH 1\r\nMAXVAL 255\r\nENDHDR\r\n",
    ] {
      #expect(try Pixels.decode(Array(header.utf8) + [7, 9], windowByteCount: windowByteCount).planes == [[7, 9]])
    }
  }

  @Test("a damaged PNG has all rows in front of the damage, however its bytes arrive", arguments: [1, 7, 300])
  func rowsBeforeDamage(windowByteCount: Int) throws {
    let file = Fixture.bytes("damaged-deflate.png")
    let whole = try Pixels.decode(file, toleratesDamage: true)
    let pixels = try Pixels.decode(file, windowByteCount: windowByteCount, toleratesDamage: true)
    #expect(pixels.planes == whole.planes && pixels.warnings == whole.warnings)
    // Three rows of 15 gray pixels precede the damage; those behind it are of one gray.
    #expect(Set(pixels.planes[0].dropFirst(45)).count == 1 && Set(pixels.planes[0][30..<45]).count > 1)
    #expect(throws: CodecError.self) { try Pixels.decode(file, windowByteCount: windowByteCount) }
  }
}
