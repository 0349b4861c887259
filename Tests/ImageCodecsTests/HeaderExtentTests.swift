import ImageCodecs
import TestSupport
import Testing

@Suite("HeaderExtent")
struct HeaderExtentTests {
  private static let names = [
    "photo-420.jpg", "photo-progressive.jpg", "photo-gray.jpg", "photo.png", "gray-16.png", "photo.webp",
    "lossless.webp", "animated.webp", "alpha.webp", "photo.gif", "photo.bmp", "photo.tga", "photo.psd", "photo.avif",
    "photo.heic",
  ]

  private static func stated(_ file: [UInt8]) -> Int? { HeaderExtent.decodingPixelCount(file.span.bytes) }

  private static func format(of file: [UInt8]) -> ImageFormat? { ImageFormat.sniff(file.span.bytes) }

  private static func decoder(_ file: [UInt8], _ format: ImageFormat) throws -> Decoder {
    let limits = CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 0)
    return try Decoder(format: format, limits: limits, budget: ImageBudget(limit: 1 << 26))
  }

  @Test("states the number of pixels that the decoder reads from the header", arguments: names)
  func pixels(name: String) throws {
    let file = Fixture.bytes(name)
    let stated = try #require(Self.stated(file))
    let format = try #require(Self.format(of: file))
    guard format.isDecodable else { return }
    var decoder = try Self.decoder(file, format)
    #expect(try decoder.readHeader(file.span.bytes, isLast: true).value)
    let count = decoder.header.width * decoder.header.height
    #expect(stated == (format == .jpeg ? count / 4 : count))
  }

  @Test("states nothing that the bytes do not contain, and reads none behind them", arguments: names)
  func hostile(name: String) {
    let file = Fixture.bytes(name)
    let stated = Self.stated(file)
    for count in 0..<min(file.count, 700) {
      let partly = Self.stated(Array(file[..<count]))
      #expect(partly == nil || partly == stated || name.hasSuffix("heic") || name.hasSuffix("avif"))
    }
    var random = SeededGenerator(seed: 29)
    for _ in 0..<2000 {
      var damaged = Array(file.prefix(1024))
      for _ in 0..<4 { damaged[.random(in: 0..<damaged.count, using: &random)] = .random(in: 0...255, using: &random) }
      #expect(Self.stated(damaged) ?? 0 >= 0)
    }
  }
}
