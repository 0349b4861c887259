import ImageCodecs
import TestSupport
import Testing

@Suite("WebP")
struct WebPTests {
  /// A plane of this size is more than twenty times the memory that is moved at a time.
  static let (width, height) = (1536, 2048)

  @Test(
    "returns each row of a large image once and in order, for any window size",
    arguments: [(PixelFormat.rgb8, 8), (.rgba8, 8), (.rgb8, 128), (.rgba8, 128)], [257, .max])
  func largeImage(image: (pixelFormat: PixelFormat, bandHeight: Int), windowByteCount: Int) throws {
    let (pixelFormat, bandHeight) = image
    var samples: [UInt8] = []
    for first in stride(from: 0, to: Self.height, by: bandHeight) {
      let row = (0..<Self.width).flatMap { Self.pixel($0, first, bandHeight).prefix(pixelFormat.pixelByteCount) }
      for _ in first..<min(first + bandHeight, Self.height) { samples += row }
    }
    let file = try encodedImage(
      samples, width: Self.width, height: Self.height, pixelFormat: pixelFormat, as: .webp)
    let budget = ImageBudget(limit: 1 << 30)
    let pixels = try Pixels.decode(file, windowByteCount: windowByteCount, budget: budget)
    #expect(pixels.layout.count == (pixelFormat == .rgb8 ? 3 : 1))
    for y in 0..<Self.height {
      for x in stride(from: y % 16, to: Self.width, by: 119) {
        let (expected, level) = (Double(Self.pixel(x, y, bandHeight)[0]), pixels.sample(x: x, y: y))
        try #require(abs(Double(level) - expected) <= 8, "\(x), \(y): \(level) instead of \(expected)")
      }
    }
  }

  @Test("lossy images are returned as RGB on request, as viewers show them", arguments: [1, 257, .max])
  func rgb(windowByteCount: Int) throws {
    let pixels = try Pixels.decode(
      Fixture.bytes("photo.webp"), windowByteCount: windowByteCount, returnsRGB: true)
    let fixture = Fixture.named("photo.webp")
    #expect(pixels.format == .rgb8 && pixels.layout.count == 1)
    #expect(pixels.planes[0].count == fixture.width * fixture.height * 3)
    for (ours, theirs) in zip(pixels.mean, fixture.mean) { #expect(abs(ours - theirs) < 0.01) }
    for name in ["photo-420.jpg", "alpha.webp", "lossless.webp"] {
      #expect(try Pixels.decode(Fixture.bytes(name)) == Pixels.decode(Fixture.bytes(name), returnsRGB: true))
    }
  }

  @Test("with many chunks before the image costs no more when it arrives in pieces")
  func manyChunks() throws {
    let image = try encodedImage(
      noiseSamples(32 * 32 * 3), width: 32, height: 32, pixelFormat: .rgb8, as: .webp)
    let header: [UInt8] = Array("VP8X".utf8) + [10, 0, 0, 0] + [0, 0, 0, 0, 31, 0, 0, 31, 0, 0]
    let chunks = repeatElement(Array("none".utf8) + [0, 0, 0, 0], count: 200_000).joined()
    let body = Array("WEBP".utf8) + header + chunks + image.dropFirst(12)
    let file = Array("RIFF".utf8) + withUnsafeBytes(of: UInt32(body.count).littleEndian) { Array($0) } + body
    // Without a limit, each of 25,000 windows would scan up to 200,000 chunks.
    let pixels = try Pixels.decode(file, windowByteCount: 64)
    #expect(try pixels == Pixels.decode(image))
  }

  @Test("is decoded from its minimum size on")
  func smallest() throws {
    // 1x1, lossless: no transforms, no color cache, five codes with the single symbol 0.
    let file: [UInt8] =
      Array("RIFF".utf8) + [20, 0, 0, 0] + Array("WEBPVP8L".utf8) + [8, 0, 0, 0, 0x2F, 0, 0, 0, 0, 0x88, 0x88, 0x08]
    for windowByteCount in [1, .max] {
      let pixels = try Pixels.decode(file, windowByteCount: windowByteCount)
      #expect(pixels.layout[0].width == 1 && pixels.layout[0].height == 1)
    }
  }

  /// Returns gray in rectangles of 16 by 8 that rarely resemble their neighbors, or in tall bands, where a few bytes
  /// contain more rows than are returned at a time.
  private static func pixel(_ x: Int, _ y: Int, _ bandHeight: Int) -> [UInt8] {
    let column = bandHeight == 8 ? x / 16 : 0
    let level = UInt8(16 + (column * 29 + y / bandHeight * 61) % 223)
    return [level, level, level, 255 - UInt8(y / bandHeight % 2)]
  }
}
