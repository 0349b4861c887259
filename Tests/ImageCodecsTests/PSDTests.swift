import ImageCodecs
import TestSupport
import Testing

@Suite("Photoshop documents")
struct PSDTests {
  private static let width = 21
  private static let height = 9

  /// Returns a channel's samples as stored: flat on the left, a slope on the right.
  private static func samples(channel: Int, bitDepth: Int) -> [Int] {
    (0..<width * height).map { place in
      let (x, y) = (place % width, place / width)
      return (x < 8 ? 40 * channel + y : (x * 11 + y * 5 + channel * 60) % 256) * (bitDepth == 16 ? 257 : 1)
        + (bitDepth == 16 && x >= 8 ? x : 0)
    }.map { min($0, bitDepth == 16 ? 65_535 : 255) }
  }

  private static func stored(_ samples: [Int], bitDepth: Int) -> [UInt8] {
    samples.flatMap { Container.bigEndian($0, byteCount: bitDepth / 8) }
  }

  struct Kind: Sendable, CustomTestStringConvertible {
    var mode: Int
    var channelCount: Int
    var bitDepth: Int
    var layerCount: Int?
    var format: PixelFormat

    var testDescription: String { "mode \(mode), \(channelCount) channels of \(bitDepth) bits" }
  }

  private static let kinds = [
    Kind(mode: 1, channelCount: 1, bitDepth: 8, format: .gray8),
    Kind(mode: 1, channelCount: 1, bitDepth: 16, format: .gray16),
    Kind(mode: 1, channelCount: 2, bitDepth: 8, layerCount: -1, format: .rgba8),
    Kind(mode: 1, channelCount: 2, bitDepth: 8, layerCount: 1, format: .gray8),
    Kind(mode: 8, channelCount: 1, bitDepth: 8, format: .gray8),
    Kind(mode: 3, channelCount: 3, bitDepth: 8, format: .rgb8),
    Kind(mode: 3, channelCount: 3, bitDepth: 16, format: .rgb16),
    Kind(mode: 3, channelCount: 4, bitDepth: 8, layerCount: -2, format: .rgba8),
    Kind(mode: 3, channelCount: 4, bitDepth: 8, format: .rgb8),
    Kind(mode: 3, channelCount: 5, bitDepth: 8, layerCount: 2, format: .rgb8),
    Kind(mode: 3, channelCount: 4, bitDepth: 16, layerCount: 2, format: .rgb16),
    Kind(mode: 1, channelCount: 2, bitDepth: 16, layerCount: -1, format: .rgba16),
    Kind(mode: 3, channelCount: 4, bitDepth: 16, layerCount: -2, format: .rgba16),
    Kind(mode: 4, channelCount: 4, bitDepth: 8, format: .rgb8),
    Kind(mode: 4, channelCount: 5, bitDepth: 16, format: .rgb16),
  ]

  private static func document(_ kind: Kind, compression: Container.PSDCompression, isLarge: Bool = false) -> [UInt8] {
    let channels = (0..<kind.channelCount).map {
      stored(samples(channel: $0, bitDepth: kind.bitDepth), bitDepth: kind.bitDepth)
    }
    return Container.psd(
      width: width, height: height, bitDepth: kind.bitDepth, mode: kind.mode, channels: channels,
      compression: compression, layerCount: kind.layerCount, isLarge: isLarge)
  }

  /// Returns the document's channels at a position, 0 to 1, without saved selections.
  ///
  /// The colors of a transparent
  /// document are those before they are blended with white.
  private static func expected(_ kind: Kind, x: Int, y: Int) -> [Double] {
    let maximum = kind.bitDepth == 16 ? 65_535.0 : 255
    let values = (0..<kind.channelCount).map {
      Double(samples(channel: $0, bitDepth: kind.bitDepth)[y * width + x]) / maximum
    }
    let colors = kind.mode == 3 || kind.mode == 4 ? Array(values.prefix(3)) : [values[0], values[0], values[0]]
    if kind.mode == 4 { return colors.map { $0 * values[3] } }
    guard kind.format == .rgba8 || kind.format == .rgba16 else {
      return kind.format == .gray8 || kind.format == .gray16 ? [values[0]] : colors
    }
    let alpha = values[kind.mode == 3 ? 3 : 1]
    let plain = colors.map { alpha == 0 ? $0 : min(1, max(0, ($0 - (1 - alpha)) / alpha)) }
    return plain + [alpha]
  }

  @Test("of every kind return their channels' samples, 16-bit ones as 16 bits, for any window size", arguments: kinds)
  func keepsSamples(kind: Kind) throws {
    for compression in Container.PSDCompression.allCases {
      for isLarge in [false, true] {
        let bytes = Self.document(kind, compression: compression, isLarge: isLarge)
        let pixels = try Pixels.decode(bytes)
        #expect(pixels.format == kind.format)
        let maximum = kind.format.is16Bit ? 65_535.0 : 255
        for (x, y) in [(0, 0), (3, 5), (9, 2), (20, 8), (15, 4), (12, 7)] {
          for (channel, value) in Self.expected(kind, x: x, y: y).enumerated() {
            let sample = Double(pixels.sample(x: x, y: y, channel: channel))
            #expect(abs(sample - value * maximum) <= 0.51, "\(x), \(y), channel \(channel)")
          }
        }
        for windowByteCount in [1, 7] {
          #expect(try Pixels.decode(bytes, windowByteCount: windowByteCount) == pixels, "windows of \(windowByteCount)")
        }
      }
    }
  }

  @Test("with palettes and with 1-bit pixels are decoded")
  func palettes() throws {
    let indices = (0..<Self.width * Self.height).map { UInt8($0 % 256) }
    let palette = (0..<3).flatMap { channel in (0..<256).map { UInt8(($0 * (channel + 1)) % 256) } }
    let mapped = try Pixels.decode(
      Container.psd(
        width: Self.width, height: Self.height, bitDepth: 8, mode: 2, channels: [indices], compression: .packBits,
        palette: palette))
    #expect(mapped.format == .rgb8)
    #expect((0..<3).map { mapped.sample(x: 16, y: 4, channel: $0) } == [100, 200, 300 % 256])
    let bits = [UInt8](repeating: 0b1010_0000, count: 3 * Self.height)
    let bitmap = try Pixels.decode(
      Container.psd(width: Self.width, height: Self.height, bitDepth: 1, mode: 0, channels: [bits]))
    #expect((0..<4).map { bitmap.sample(x: $0, y: 3) } == [0, 255, 0, 255])
  }

  @Test("that are truncated anywhere or have bad runs are refused", arguments: Container.PSDCompression.allCases)
  func damage(compression: Container.PSDCompression) throws {
    let bytes = Self.document(Self.kinds[5], compression: compression)
    for count in 1..<bytes.count - 1 {
      let budget = ImageBudget(limit: 1 << 24)
      let error = #expect(throws: CodecError.self, "cut to \(count)") {
        _ = try Pixels.decode(Array(bytes.prefix(count)), budget: budget)
      }
      #expect(error?.code == (count < 4 ? .unsupported : .truncated), "cut to \(count)")
      #expect(budget.used == 0)
    }
    guard compression == .packBits else { return }
    var wrong = bytes
    // After the table of row lengths, which raw data does not have.
    let raw = Self.document(Self.kinds[5], compression: .raw)
    let data = raw.count - 3 * Self.height * Self.width + 2 * 3 * Self.height
    for place in data..<bytes.count { wrong[place] = 0x81 }  // runs of 128 exceed a row of 21 bytes
    let error = #expect(throws: CodecError.self) { _ = try Pixels.decode(wrong) }
    #expect(error?.code == .corrupt)
  }

  @Test("of unsupported kinds are refused as unsupported", arguments: [(9, 8, 3), (7, 8, 3), (3, 32, 3), (1, 32, 1)])
  func unsupported(mode: Int, bitDepth: Int, channelCount: Int) {
    let channel = [UInt8](repeating: 0, count: 4 * bitDepth / 8)
    let bytes = Container.psd(
      width: 2, height: 2, bitDepth: bitDepth, mode: mode,
      channels: [[UInt8]](repeating: channel, count: channelCount))
    let error = #expect(throws: CodecError.self) { _ = try Pixels.decode(bytes) }
    #expect(error?.code == .unsupported)
  }
}
