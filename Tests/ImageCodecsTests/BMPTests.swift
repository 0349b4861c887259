import ImageCodecs
import TestSupport
import Testing

@Suite("BMPs")
struct BMPTests {
  /// Returns a BMP of 24-bit pixels with an embedded profile behind them.
  private static func withProfile(_ profile: [UInt8], width: Int, height: Int) -> [UInt8] {
    func little(_ value: Int, _ byteCount: Int = 4) -> [UInt8] { Container.littleEndian(value, byteCount: byteCount) }
    let rows = (0..<width * 3 * height).map { UInt8($0 * 7 % 256) }
    precondition(width % 4 == 0)
    let header =
      little(124) + little(width) + little(height) + little(1, 2) + little(24, 2) + [UInt8](repeating: 0, count: 40)
      + Array("DEBM".utf8) + [UInt8](repeating: 0, count: 48) + little(4) + little(124 + rows.count)
      + little(profile.count) + little(0)
    return Array("BM".utf8) + little(138 + rows.count + profile.count) + little(0) + little(138) + header + rows
      + profile
  }

  @Test("return the embedded color profile, which follows the rows", arguments: [1, 100, Int.max])
  func profile(windowByteCount: Int) throws {
    let profile = Fixture.bytes("display-p3.icc")
    let file = Self.withProfile(profile, width: 40, height: 30)
    let plain = try Pixels.decode(Self.withProfile([], width: 40, height: 30))
    let files: [([UInt8], Int, [ImageHeader.Warning])] = [
      (file, profile.count, []), (Array(file.dropLast(9)), 0, [.unusableProfile]),
      (Self.withProfile(Fixture.bytes("srgb.icc"), width: 40, height: 30), 0, []),
      (Self.withProfile([1, 2, 3], width: 40, height: 30), 0, [.unusableProfile]),
    ]
    for (bytes, byteCount, warnings) in files {
      let pixels = try Pixels.decode(bytes, windowByteCount: windowByteCount)
      #expect(pixels.planes == plain.planes && pixels.warnings == warnings)
      let budget = ImageBudget(limit: 1 << 24)
      var decoder = try Decoder(
        format: .bmp, limits: CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 0), budget: budget)
      #expect(try decoder.readHeader(bytes.span.bytes, isLast: true).value)
      #expect(decoder.header.profileByteCount == byteCount)
    }
  }

  @Test("with masks of more than 8 bits keep their precision", arguments: [1, Int.max])
  func deepMasks(windowByteCount: Int) throws {
    let pixels = [[0, 1, 2], [1023, 512, 511], [700, 3, 1022]]
    func little(_ value: Int, _ byteCount: Int = 4) -> [UInt8] { Container.littleEndian(value, byteCount: byteCount) }
    let data = pixels.flatMap { little($0[0] << 20 | $0[1] << 10 | $0[2]) }
    let header =
      little(40) + little(pixels.count) + little(1) + little(1, 2) + little(32, 2) + little(3) + little(data.count)
      + little(0) + little(0) + little(0) + little(0)
    let masks = little(1023 << 20) + little(1023 << 10) + little(1023)
    let bytes = Array("BM".utf8) + little(66 + data.count) + little(0) + little(66) + header + masks + data
    let decoded = try Pixels.decode(bytes, windowByteCount: windowByteCount)
    #expect(decoded.format == .rgb16)
    for (x, pixel) in pixels.enumerated() {
      for (channel, value) in pixel.enumerated() {
        #expect(decoded.sample(x: x, y: 0, channel: channel) == (value * 65_535 + 511) / 1023)
      }
    }
  }
}
