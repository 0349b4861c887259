import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

/// Images with 16-bit samples keep them until the result is rounded to 8 bits.
///
/// Every sample in these images is almost half an 8-bit level above a whole level: if it is rounded too early, the
/// whole image is too dark by that amount.
@Suite("16-bit samples")
struct DeepSampleTests {
  private static let side = 64
  private static let target = 24

  /// The channels of an image; the raw value is a PAM's depth.
  enum Kind: Int, CaseIterable, Sendable {
    case gray = 1
    case rgb = 3
    case rgba = 4
  }

  /// Returns a slope from left to right that differs by row and channel, in 65536ths.
  private static func sample(_ x: Int, _ y: Int, _ channel: Int) -> Int {
    channel == 3 ? 65535 - 257 * (x / 2) : 257 * (40 + x + y + 9 * channel) + 120
  }

  private static func image(_ kind: Kind) -> [UInt8] {
    let header = "P7\nWIDTH \(side)\nHEIGHT \(side)\nDEPTH \(kind.rawValue)\nMAXVAL 65535\nENDHDR\n"
    var bytes = Array(header.utf8)
    for y in 0..<side {
      for x in 0..<side {
        for channel in 0..<kind.rawValue { bytes += Container.bigEndian(sample(x, y, channel), byteCount: 2) }
      }
    }
    return bytes
  }

  /// Returns a result's sample in double precision, 0 to 255.
  private static func exact(_ kind: Kind, _ x: Int, _ y: Int, _ channel: Int) -> Double {
    func resampled(_ value: (Int, Int) -> Double) -> Double {
      weights(y).reduce(0) { sum, row in
        sum + row.weight * weights(x).reduce(0) { $0 + $1.weight * value($1.index, row.index) }
      }
    }
    guard kind == .rgba, channel < 3 else { return resampled { Double(sample($0, $1, channel)) / 257 } }
    let alpha = resampled { Double(sample($0, $1, 3)) }
    return resampled { Double(sample($0, $1, channel)) * Double(sample($0, $1, 3)) } / alpha / 257
  }

  /// Returns Lanczos-3 weights as specified in `cpixels.h`.
  private static func weights(_ destination: Int) -> [(index: Int, weight: Double)] {
    let ratio = Double(side) / Double(target)
    let center = (Double(destination) + 0.5) * ratio
    let taps = (Int(center - 3 * ratio) - 1...Int(center + 3 * ratio) + 1).map { s in
      (index: min(side - 1, max(0, s)), weight: lanczos((Double(s) + 0.5 - center) / ratio))
    }
    let sum = taps.reduce(0) { $0 + $1.weight }
    return taps.map { ($0.index, $0.weight / sum) }
  }

  private static func lanczos(_ x: Double) -> Double {
    if x == 0 { return 1 }
    guard abs(x) < 3 else { return 0 }
    let a = Double.pi * x
    return 3 * sine(a) * sine(a / 3) / (a * a)
  }

  private static func sine(_ x: Double) -> Double {
    var (term, sum, n) = (x, x, 1.0)
    while abs(term) > 1e-18 {
      term *= -x * x / ((n + 1) * (n + 2))
      sum += term
      n += 2
    }
    return sum
  }

  @Test("are within half a level of the exact result when resized", arguments: Kind.allCases)
  func resized(kind: Kind) throws {
    let configuration = ProcessingConfiguration(maxWidth: Self.target, maxHeight: Self.target, preferredFormat: .png)
    let result = try process(Self.image(kind), configuration)
    #expect(result.report.input.bitDepth == 16)
    let pixels = try Pixels.decode(result.bytes)
    var maximum = 0.0
    var early = 0.0
    for y in 0..<Self.target {
      for x in 0..<Self.target {
        for channel in 0..<kind.rawValue {
          let exact = Self.exact(kind, x, y, channel)
          maximum = max(maximum, abs(Double(pixels.sample(x: x, y: y, channel: channel)) - exact))
          if channel < 3 { early = max(early, abs((exact - 120.0 / 257).rounded() - exact)) }
        }
      }
    }
    // A small allowance for single precision, and for the 16-bit precision of color times alpha.
    #expect(maximum <= (kind == .rgba ? 0.51 : 0.502))
    #expect(early > 0.8, "rounding to 8 bits first would not be seen")
  }

  @Test("are rounded to the nearest level at the same size", arguments: Kind.allCases)
  func sameSize(kind: Kind) throws {
    let pixels = try Pixels.decode(
      try process(Self.image(kind), ProcessingConfiguration(preferredFormat: .png)).bytes)
    for y in 0..<Self.side {
      for x in 0..<Self.side {
        for channel in 0..<kind.rawValue {
          let exact = (Double(Self.sample(x, y, channel)) / 257).rounded()
          #expect(Double(pixels.sample(x: x, y: y, channel: channel)) == exact)
        }
      }
    }
  }

  @Test("are flattened on the background color", arguments: [nil, target])
  func flattened(bound: Int?) throws {
    let background = Color(red: 200, green: 10, blue: 100)
    let configuration = ProcessingConfiguration(
      maxWidth: bound, maxHeight: bound, preferredFormat: .jpeg, background: background)
    let pixels = try Pixels.decode(try process(Self.image(.rgba), configuration).bytes)
    let side = bound ?? Self.side
    let step = Double(Self.side) / Double(side)
    for place in [side / 4, side / 2] {
      let (x, y) = ((Double(place) + 0.5) * step - 0.5, (Double(place) + 0.5) * step - 0.5)
      let alpha = 1 - (x / 2).rounded(.down) / 255
      let ours = pixels.color(x: place, y: place)
      for (channel, behind) in [200.0, 10, 100].enumerated() {
        let color = (257 * (40 + x + y + Double(9 * channel)) + 120) / 257
        #expect(abs(ours[channel] - (color * alpha + behind * (1 - alpha))) < 3)
      }
    }
  }

  @Test("are converted to sRGB by their profile to within a level, resized or not", arguments: [false, true])
  func profiled(alpha: Bool) throws {
    // Display P3 colors and their sRGB values, from the two standards' matrices and their common curve.
    let patches: [(p3: [Int], srgb: [Double])] = [
      ([200, 100, 50], [214.9, 92.6, 31.0]), ([90, 160, 120], [60.7, 162.1, 116.6]),
    ]
    for patch in patches {
      let samples = patch.p3 + (alpha ? [255] : [])
      let row = (0..<16).flatMap { _ in samples.flatMap { Container.bigEndian($0 * 257, byteCount: 2) } }
      let png = Self.png(rows: [[UInt8]](repeating: row, count: 16), width: 16, colorType: alpha ? 6 : 2)
      let tagged = Container.png(png, adding: [Container.profileChunk(Fixture.bytes("display-p3.icc"))])
      for bound in [nil, 8] {
        let configuration = ProcessingConfiguration(maxWidth: bound, maxHeight: bound, preferredFormat: .png)
        let result = try process(tagged, configuration)
        #expect(result.report.messages.isEmpty)
        let ours = try Pixels.decode(result.bytes).color(x: 4, y: 4)
        for channel in 0..<3 { #expect(abs(ours[channel] - patch.srgb[channel]) <= 0.8) }
      }
    }
  }

  @Test("with a gray profile use its whole curve")
  func grayProfile() throws {
    // At level 20 a gamma of 1.8 is steep: two adjacent 8-bit levels are more than two levels apart in the result.
    let rows = (0..<8).map { _ in (0..<64).flatMap { Container.bigEndian(257 * 20 + 4 * $0, byteCount: 2) } }
    let png = Self.png(rows: rows, width: 64, colorType: 0)
    let tagged = Container.png(png, adding: [Container.profileChunk(Fixture.bytes("gray-gamma-1.8.icc"))])
    let pixels = try Pixels.decode(try process(tagged, ProcessingConfiguration(preferredFormat: .png)).bytes)
    let row = (0..<64).map { pixels.sample(x: $0, y: 4) }
    #expect(row == row.sorted())
    #expect(Set(row).count > 1)
  }

  /// Returns a PNG with 16-bit samples and uncompressed data.
  private static func png(rows: [[UInt8]], width: Int, colorType: UInt8) -> [UInt8] {
    let size = Container.bigEndian(width, byteCount: 4) + Container.bigEndian(rows.count, byteCount: 4)
    let data = Container.stored(rows.flatMap { [0] + $0 })
    let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
    return signature + Container.pngChunk("IHDR", size + [16, colorType, 0, 0, 0]) + Container.pngChunk("IDAT", data)
      + Container.pngChunk("IEND", [])
  }
}
