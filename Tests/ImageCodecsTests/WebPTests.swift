import ImageCodecs
import TestSupport
import Testing

@Suite("WebP")
struct WebPTests {
  /// A plane of this size is more than twenty times the memory that is moved at a time.
  static let (width, height) = (1536, 2048)

  @Test(
    "gives each row of a large picture once and in its place, whatever arrives at a time",
    arguments: [(PixelFormat.rgb8, 8), (.rgba8, 8), (.rgb8, 128), (.rgba8, 128)], [257, .max])
  func largePicture(picture: (pixelFormat: PixelFormat, bandHeight: Int), windowByteCount: Int) throws {
    let (pixelFormat, bandHeight) = picture
    let samples = (0..<Self.height).flatMap { y in
      (0..<Self.width).flatMap { x in Self.pixel(x, y, bandHeight).prefix(pixelFormat.pixelByteCount) }
    }
    let file = try encodedPicture(
      samples, width: Self.width, height: Self.height, pixelFormat: pixelFormat, as: .webp)
    let budget = PictureBudget(limit: 1 << 30)
    let pixels = try Pixels.decode(file, windowByteCount: windowByteCount, budget: budget)
    #expect(pixels.layout.count == (pixelFormat == .rgb8 ? 3 : 1))
    for y in 0..<Self.height {
      for x in stride(from: y % 16, to: Self.width, by: 119) {
        let (expected, level) = (Double(Self.pixel(x, y, bandHeight)[0]), pixels.sample(x: x, y: y))
        try #require(abs(Double(level) - expected) <= 8, "\(x), \(y): \(level) instead of \(expected)")
      }
    }
  }

  /// Gray, in rectangles of 16 by 8 that are seldom like others near them; or in high bands, of which a few bytes hold more
  /// rows than are given at a time.
  private static func pixel(_ x: Int, _ y: Int, _ bandHeight: Int) -> [UInt8] {
    let column = bandHeight == 8 ? x / 16 : 0
    let level = UInt8(16 + (column * 29 + y / bandHeight * 61) % 223)
    return [level, level, level, 255 - UInt8(y / bandHeight % 2)]
  }
}
