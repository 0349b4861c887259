import Foundation
import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

/// Colors given by code points of ITU-T H.273 are converted to sRGB.
@Suite("Color code points")
struct ColorCodesTests {
  /// A color space: its code points, the primaries' chromaticities, and the light of a signal.
  struct Space: Sendable, CustomTestStringConvertible {
    var primaries: UInt8
    var transfer: UInt8
    var chromaticities: [SIMD2<Double>]
    var light: @Sendable (Double) -> Double
    var testDescription: String { "\(primaries)/\(transfer)" }
  }

  private static let bt709 = [SIMD2(0.64, 0.33), SIMD2(0.3, 0.6), SIMD2(0.15, 0.06)]
  private static let p3 = [SIMD2(0.68, 0.32), SIMD2(0.265, 0.69), SIMD2(0.15, 0.06)]
  private static let bt2020 = [SIMD2(0.708, 0.292), SIMD2(0.17, 0.797), SIMD2(0.131, 0.046)]

  private static let spaces = [
    Space(primaries: 12, transfer: 13, chromaticities: p3, light: srgbLight),
    Space(primaries: 9, transfer: 13, chromaticities: bt2020, light: srgbLight),
    Space(primaries: 1, transfer: 1, chromaticities: bt709, light: bt709Light),
    Space(primaries: 9, transfer: 14, chromaticities: bt2020, light: bt709Light),
    Space(primaries: 1, transfer: 8, chromaticities: bt709, light: { $0 }),
    Space(primaries: 1, transfer: 4, chromaticities: bt709, light: { pow($0, 2.2) }),
    Space(primaries: 9, transfer: 16, chromaticities: bt2020, light: { toned(pqLuminance($0)) }),
    Space(primaries: 12, transfer: 16, chromaticities: p3, light: { toned(pqLuminance($0)) }),
    Space(primaries: 9, transfer: 18, chromaticities: bt2020, light: { toned(hlgLuminance($0)) }),
  ]

  private static let toPNG = ProcessingConfiguration(preferredFormat: .png)

  // MARK: Definitions

  @Sendable private static func srgbLight(_ signal: Double) -> Double {
    signal <= 0.04045 ? signal / 12.92 : pow((signal + 0.055) / 1.055, 2.4)
  }

  @Sendable private static func bt709Light(_ signal: Double) -> Double {
    signal < 0.081 ? signal / 4.5 : pow((signal + 0.099) / 1.099, 1 / 0.45)
  }

  private static let (m1, m2) = (2610.0 / 16384, 2523.0 / 32)
  private static let (c1, c2, c3) = (3424.0 / 4096, 2413.0 / 128, 2392.0 / 128)

  private static func pqLuminance(_ signal: Double) -> Double {
    let power = pow(signal, 1 / m2)
    return 10_000 * pow(max(power - c1, 0) / (c2 - c3 * power), 1 / m1)
  }

  private static func pqSignal(_ luminance: Double) -> Double {
    let power = pow(luminance / 10_000, m1)
    return pow((c1 + c2 * power) / (1 + c3 * power), m2)
  }

  private static func hlgLuminance(_ signal: Double) -> Double {
    let (a, b, c) = (0.17883277, 0.28466892, 0.55991073)
    return 1000 * pow(signal <= 0.5 ? signal * signal / 3 : (exp((signal - c) / a) + b) / 12, 1.2)
  }

  /// The tone curve of BT.2390 from 1000 to 203 cd/m2, for one channel.
  private static func toned(_ luminance: Double) -> Double {
    let peak = pqSignal(1000)
    let largest = pqSignal(203) / peak
    let knee = 1.5 * largest - 0.5
    let signal = pqSignal(min(luminance, 1000)) / peak
    guard signal > knee else { return luminance / 203 }
    let t = (signal - knee) / (1 - knee)
    let start = (2 * t * t * t - 3 * t * t + 1) * knee + (t * t * t - 2 * t * t + t) * (1 - knee)
    return pqLuminance((start + (3 * t * t - 2 * t * t * t) * largest) * peak) / 203
  }

  /// Returns XYZ of full red, green and blue with D65 as white, by columns.
  private static func matrix(_ chromaticities: [SIMD2<Double>]) -> [SIMD3<Double>] {
    let columns = chromaticities.map { SIMD3($0.x / $0.y, 1, (1 - $0.x - $0.y) / $0.y) }
    let white = SIMD3(0.3127 / 0.3290, 1, (1 - 0.3127 - 0.3290) / 0.3290)
    let weights = solve(columns, white)
    return columns.indices.map { columns[$0] * weights[$0] }
  }

  private static func determinant(_ a: SIMD3<Double>, _ b: SIMD3<Double>, _ c: SIMD3<Double>) -> Double {
    a.x * (b.y * c.z - b.z * c.y) - b.x * (a.y * c.z - a.z * c.y) + c.x * (a.y * b.z - a.z * b.y)
  }

  private static func solve(_ m: [SIMD3<Double>], _ v: SIMD3<Double>) -> SIMD3<Double> {
    let whole = determinant(m[0], m[1], m[2])
    return SIMD3(determinant(v, m[1], m[2]), determinant(m[0], v, m[2]), determinant(m[0], m[1], v)) / whole
  }

  /// Returns the sRGB levels, 0 to 255, of a color whose signals are 0 to 255.
  private static func srgb(_ color: [Double], in space: Space) -> [Double] {
    let light = color.map { space.light($0 / 255) }
    let columns = matrix(space.chromaticities)
    let linear = solve(matrix(bt709), columns[0] * light[0] + columns[1] * light[1] + columns[2] * light[2])
    return (0..<3).map { channel in
      let value = min(1, max(0, linear[channel]))
      return 255 * (value <= 0.0031308 ? 12.92 * value : 1.055 * pow(value, 1 / 2.4) - 0.055)
    }
  }

  // MARK: Comparison

  /// Compares the result for `bytes` with the definition, from the samples as they are decoded.
  private static func expect(_ bytes: [UInt8], in space: Space, _ name: String) throws {
    let stored = try Pixels.decode(bytes)
    let result = try process(bytes, toPNG)
    let converted = try Pixels.decode(result.bytes)
    #expect(result.report.messages.isEmpty)
    var largest = 0.0
    for y in 0..<stored.layout[0].height {
      for x in 0..<stored.layout[0].width {
        let exact = srgb(stored.color(x: x, y: y), in: space)
        for (ours, theirs) in zip(converted.color(x: x, y: y), exact) { largest = max(largest, abs(ours - theirs)) }
      }
    }
    #expect(largest <= 1, "\(name) is off by \(largest) levels")
  }

  /// Returns a PNG of saturated and pale colors, dark and bright.
  private static func chart(bitDepth: UInt8) -> [UInt8] {
    let levels: [UInt8] = [0, 20, 60, 110, 150, 200, 255]
    var rows: [UInt8] = []
    for red in levels {
      rows.append(0)
      for green in levels {
        for blue in levels { rows += [red, green, blue].flatMap { bitDepth == 8 ? [$0] : [$0, UInt8(255) &- $0] } }
      }
    }
    return Container.png(
      width: levels.count * levels.count, height: levels.count, bitDepth: bitDepth, colorType: 2, rows: rows)
  }

  private static func tagged(_ png: [UInt8], _ space: Space) -> [UInt8] {
    Container.png(png, adding: [("cICP", [space.primaries, space.transfer, 0, 1])])
  }

  @Test("of PQ are kept, and a background has the light of its color", arguments: [32, 128, 192, 255])
  func background(level: UInt8) throws {
    let space = try #require(Self.spaces.first { $0.transfer == 16 })
    var configuration = ProcessingConfiguration(
      maxWidth: 60, maxHeight: 60, preferredFormat: .png, background: Color(red: level, green: level, blue: level),
      colorSpace: .keep, png: PNGOptions(bitDepth: 16))
    configuration.pad = true
    let pixels = try Pixels.decode(try process(Self.tagged(Self.chart(bitDepth: 16), space), configuration).bytes)
    let signal = Double(level) / 255
    let light = signal <= 0.04045 ? signal / 12.92 : pow((signal + 0.055) / 1.055, 2.4)
    for channel in 0..<3 {
      let luminance = Self.pqLuminance(Double(pixels.sample(x: 2, y: 2, channel: channel)) / 65535)
      #expect(abs(luminance / 203 - light) <= 0.03 * light, "\(luminance)")
    }
  }

  @Test("of PNG are converted by their definitions", arguments: spaces, [8, 16])
  func png(space: Space, bitDepth: UInt8) throws {
    try Self.expect(Self.tagged(Self.chart(bitDepth: bitDepth), space), in: space, "PNG")
  }

  @Test(
    "of AVIF and HEIC are converted by their definitions", .enabled(if: ImageFormat.avif.isDecodable),
    arguments: spaces)
  func heif(space: Space) throws {
    for (name, brand) in [("photo.avif", "avif"), ("deep.avif", "avif"), ("photo.heic", "heic")] {
      var file = HEIFFile(brand: brand)
      _ = file.add(
        HEIFFile.Coded(fixture: name, without: ["colr"]),
        properties: [.color(primaries: space.primaries, transfer: space.transfer)])
      try Self.expect(file.bytes, in: space, name)
    }
  }

  /// Lossless, written by cjxl 0.7 with -x color_space=RGB_D65_202_Rel_PeQ.
  @Test("of PQ in JPEG XL are converted by its definition", .enabled(if: ImageFormat.jxl.isDecodable))
  func jxl() throws {
    let space = try #require(Self.spaces.first { $0.primaries == 9 && $0.transfer == 16 })
    try Self.expect(Fixture.bytes("pq.jxl"), in: space, "JPEG XL")
  }

  @Test("take precedence over the profile of a PNG, in either order")
  func precedence() throws {
    let plain = Self.chart(bitDepth: 8)
    let profile = Container.profileChunk(Fixture.bytes("display-p3.icc"))
    let codes = ("cICP", [UInt8]([1, 13, 0, 1]))
    let samples = try Pixels.decode(plain).planes
    for chunks in [[codes], [codes, profile], [profile, codes]] {
      let result = try process(Container.png(plain, adding: chunks), Self.toPNG)
      #expect(try Pixels.decode(result.bytes).planes == samples && result.report.warnings.isEmpty)
    }
    let converted = try process(Container.png(plain, adding: [profile]), Self.toPNG)
    #expect(try Pixels.decode(converted.bytes).planes != samples)
    let unknown = try process(Container.png(plain, adding: [("cICP", [99, 13, 0, 1]), profile]), Self.toPNG)
    #expect(unknown.bytes == converted.bytes)
  }

  @Test(
    "that are not supported are reported", arguments: [[99, 13, 0, 1], [1, 99, 0, 1], [9, 16, 9, 1], [9, 16, 0, 0]])
  func unsupported(codes: [UInt8]) throws {
    let plain = Self.chart(bitDepth: 8)
    let result = try process(Container.png(plain, adding: [("cICP", codes)]), Self.toPNG)
    #expect(result.report.warnings.count == 1)
    #expect(try Pixels.decode(result.bytes).planes == Pixels.decode(plain).planes)
  }

  @Test("of a gray PNG are a curve: grays stay gray, and primaries do not matter")
  func gray() throws {
    let plain = Container.png(width: 256, height: 1, bitDepth: 8, colorType: 0, rows: [0] + (0...255))
    for space in Self.spaces {
      let pixels = try Pixels.decode(process(Self.tagged(plain, space), Self.toPNG).bytes)
      #expect(pixels.format == .gray8)
      for level in 0...255 {
        let exact = min(1, max(0, space.light(Double(level) / 255)))
        let signal = exact <= 0.0031308 ? 12.92 * exact : 1.055 * pow(exact, 1 / 2.4) - 0.055
        try #require(abs(Double(pixels.sample(x: level, y: 0)) - 255 * signal) <= 1, "\(space) \(level)")
      }
    }
  }

  @Test("do not change images that are sRGB")
  func srgb() throws {
    let plain = Self.chart(bitDepth: 16)
    for codes: [UInt8] in [[1, 13, 0, 1], [2, 13, 0, 1], [1, 2, 0, 1], [2, 2, 0, 1]] {
      let result = try process(Container.png(plain, adding: [("cICP", codes)]), Self.toPNG)
      #expect(try result.bytes == process(plain, Self.toPNG).bytes)
    }
  }
}
