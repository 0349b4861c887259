import ImageCodecs
import TestSupport
import Testing

@Suite("BMPs")
struct BMPTests {
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
