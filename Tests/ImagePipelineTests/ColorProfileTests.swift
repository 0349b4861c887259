import Foundation
import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Color profiles")
struct ColorProfileTests {
  private static let p3 = Fixture.bytes("display-p3.icc")
  private static let warning =
    "the color profile is damaged or does not match the image; its colors were treated as sRGB"
  private static let toPNG = ProcessingConfiguration(preferredFormat: .png)

  /// Colors within Display P3 and their sRGB values, from the two standards' matrices and their common curve.
  private static let patches: [(p3: [UInt8], srgb: [Double])] = [
    ([200, 100, 50], [214.9, 92.6, 31.0]), ([90, 160, 120], [60.7, 162.1, 116.6]), ([128, 128, 128], [128, 128, 128]),
    ([60, 70, 200], [57.5, 70.4, 207.7]),
  ]

  /// Returns a PNG with a row of 8x8 patches.
  private static func patchedPNG(alpha: Bool) throws -> [UInt8] {
    var row: [UInt8] = []
    for patch in patches {
      for _ in 0..<8 { row += patch.p3 + (alpha ? [255] : []) }
    }
    return try encodedImage(
      [[UInt8]](repeating: row, count: 8).flatMap(\.self), width: 8 * patches.count, height: 8,
      pixelFormat: alpha ? .rgba8 : .rgb8)
  }

  private static func expectPatches(_ bytes: [UInt8], tolerance: Double, _ comment: Comment) throws {
    let pixels = try Pixels.decode(bytes)
    for (index, patch) in patches.enumerated() {
      for (ours, exact) in zip(pixels.color(x: index * 8 + 4, y: 4), patch.srgb) {
        #expect(abs(ours - exact) <= tolerance, "patch \(index): \(comment)")
      }
    }
  }

  @Test(
    "a PNG's colors are converted from its profile to sRGB, with and without alpha, resized or not",
    arguments: [false, true])
  func png(alpha: Bool) throws {
    let tagged = Container.png(try Self.patchedPNG(alpha: alpha), adding: [Container.profileChunk(Self.p3)])
    let result = try process(tagged, Self.toPNG)
    try Self.expectPatches(result.bytes, tolerance: 1, "same size")
    #expect(result.report.messages.isEmpty)
    let configuration = ProcessingConfiguration(
      maxWidth: 64, maxHeight: 16, preferredFormat: .png, resizeMode: .stretch, allowUpscale: true)
    let pixels = try Pixels.decode(try process(tagged, configuration).bytes)
    for (index, patch) in Self.patches.enumerated() {
      for (ours, exact) in zip(pixels.color(x: index * 16 + 8, y: 8), patch.srgb) { #expect(abs(ours - exact) <= 2) }
    }
    let filtered = ProcessingConfiguration(preferredFormat: .png, filters: [Filter(name: "invert")])
    let inverted = try Pixels.decode(try process(tagged, filtered).bytes)
    let converted = try Pixels.decode(result.bytes)
    for channel in 0..<3 {
      #expect(inverted.sample(x: 4, y: 4, channel: channel) == 255 - converted.sample(x: 4, y: 4, channel: channel))
    }
  }

  @Test("16-bit colors are converted as exactly as 8-bit ones, also where the gamut ends", arguments: [false, true])
  func deep(alpha: Bool) throws {
    let levels = stride(from: UInt8(0), through: 250, by: 25).map(\.self) + [255]
    let samples = levels.flatMap { red in
      levels.flatMap { green in levels.flatMap { blue in [red, green, blue] + (alpha ? [UInt8(77)] : []) } }
    }
    func convert(_ samples: [UInt8], _ format: PixelFormat) throws -> Pixels {
      let png = try encodedImage(samples, width: levels.count * levels.count, height: levels.count, pixelFormat: format)
      return try Pixels.decode(
        try process(Container.png(png, adding: [Container.profileChunk(Self.p3)]), Self.toPNG).bytes)
    }
    let shallow = try convert(samples, alpha ? .rgba8 : .rgb8)
    let deep = try convert(samples.flatMap { [$0, $0] }, alpha ? .rgba16 : .rgb16)
    #expect(shallow.format == deep.format && shallow.planes[0].count == deep.planes[0].count)
    #expect(zip(shallow.planes[0], deep.planes[0]).allSatisfy { abs(Int($0) - Int($1)) <= 1 })
  }

  @Test("a JPEG's colors are converted to sRGB, however its profile and the file are split")
  func jpeg() throws {
    let plain = try process(try Self.patchedPNG(alpha: false), ProcessingConfiguration(preferredFormat: .jpeg)).bytes
    let pieces = Container.profileSegments(Self.p3, pieceByteCount: 100)
    let whole = try process(Container.jpeg(plain, adding: Container.profileSegments(Self.p3)), Self.toPNG)
    try Self.expectPatches(whole.bytes, tolerance: 4, "one piece")
    #expect(whole.report.messages.isEmpty)
    for segments in [pieces, pieces.reversed(), pieces + [pieces[0]]] {
      let tagged = Container.jpeg(plain, adding: segments)
      for windowByteCount in [1, 4096] {
        let result = try process(tagged, Self.toPNG, windowByteCount: windowByteCount)
        #expect(result.bytes == whole.bytes && result.report.messages.isEmpty)
      }
    }
  }

  @Test("a WebP's colors are converted from its profile to sRGB")
  func webp() throws {
    let configuration = ProcessingConfiguration(preferredFormat: .webp)
    let plain = try process(try Self.patchedPNG(alpha: false), configuration).bytes
    let tagged = Container.webp(plain, width: 8 * Self.patches.count, height: 8, profile: Self.p3)
    let result = try process(tagged, Self.toPNG)
    try Self.expectPatches(result.bytes, tolerance: 8, "lossy")
    #expect(result.report.messages.isEmpty)
  }

  @Test("a gray profile that is linear is exact where its curve is steep")
  func linearGray() throws {
    var profile = Fixture.bytes("gray-gamma-1.8.icc")
    let gamma = Array("para".utf8) + [0, 0, 0, 0, 0, 0, 0, 0]
    let place = try #require(profile.indices.first { profile[$0...].starts(with: gamma) }) + gamma.count
    profile.replaceSubrange(place..<place + 4, with: [0, 1, 0, 0])
    let png = try encodedImage((0...255).map(UInt8.init), width: 256, height: 1, pixelFormat: .gray8)
    let pixels = try Pixels.decode(
      try process(Container.png(png, adding: [Container.profileChunk(profile)]), Self.toPNG).bytes)
    for level in 0...255 {
      let light = Double(level) / 255
      let exact = 255 * (light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055)
      #expect(abs(Double(pixels.sample(x: level, y: 0, channel: 0)) - exact) <= 1, "\(level)")
    }
  }

  @Test("a gray profile is a curve: grays stay gray")
  func gray() throws {
    let samples = (0...255).map { UInt8($0) }
    let png = try encodedImage(samples, width: 256, height: 1, pixelFormat: .gray8)
    let tagged = Container.png(png, adding: [Container.profileChunk(Fixture.bytes("gray-gamma-1.8.icc"))])
    let pixels = try Pixels.decode(try process(tagged, Self.toPNG).bytes)
    #expect(pixels.format == .gray8)
    // Gamma 1.8 to sRGB's curve: 64 is 8.3 % of light, 128 is 28.9 %, 200 is 64.6 %.
    for (level, expected) in [(0, 0), (64, 81), (128, 146), (200, 210), (255, 255)] {
      #expect(abs(pixels.sample(x: level, y: 0) - expected) <= 1, "\(level)")
    }
  }

  @Test("CMYK is converted by its profile, or by the simple rule without one")
  func cmyk() throws {
    let plain = Fixture.bytes("photo-cmyk.jpg")
    let tagged = Container.jpeg(plain, adding: Container.profileSegments(Fixture.bytes("inks.icc")))
    let (without, with) = (try process(plain, Self.toPNG), try process(tagged, Self.toPNG))
    #expect(with.report.messages.isEmpty)
    #expect(with.bytes != without.bytes)
    let wrong = Container.jpeg(plain, adding: Container.profileSegments(Self.p3))
    let refused = try process(wrong, Self.toPNG)
    #expect(refused.bytes == without.bytes && refused.report.messages == [Self.warning])
  }

  /// CMYK values, their conversion by Little CMS with inks.icc (through Pillow), and the result of the simple rule.
  private static let inkPatches: [(cmyk: [UInt8], converted: [Double], plain: [Double])] = [
    ([0, 0, 0, 0], [255, 255, 255], [255, 255, 255]), ([255, 0, 0, 0], [0, 161, 214], [0, 255, 255]),
    ([0, 255, 0, 0], [217, 41, 131], [255, 0, 255]), ([30, 120, 200, 10], [205, 134, 54], [216, 130, 53]),
    ([0, 0, 0, 255], [0, 0, 0], [0, 0, 0]), ([200, 40, 90, 60], [66, 132, 146], [42, 164, 126]),
  ]

  @Test(
    "CMYK of a TIFF is converted by its profile, with 8 and with 16 bits", .enabled(if: ImageFormat.tiff.isDecodable),
    arguments: [8, 16],
    [true, false])
  func inksOfTIFF(bitDepth: Int, hasProfile: Bool) throws {
    let samples = Self.inkPatches.flatMap(\.cmyk).flatMap { [UInt8](repeating: $0, count: bitDepth / 8) }
    let tiff = Container.tiff(
      width: Self.inkPatches.count, height: 1, bitDepth: bitDepth, sampleCount: 4, photometric: 5, samples: samples,
      profile: hasProfile ? Fixture.bytes("inks.icc") : [])
    let result = try process(tiff, Self.toPNG)
    #expect(result.report.messages.isEmpty && result.report.input.colorSpace == "cmyk")
    let pixels = try Pixels.decode(result.bytes)
    for (index, patch) in Self.inkPatches.enumerated() {
      let expected = hasProfile ? patch.converted : patch.plain
      for (ours, theirs) in zip(pixels.color(x: index, y: 0), expected) { #expect(abs(ours - theirs) <= 1, "\(index)") }
    }
    let wrong = Container.tiff(
      width: Self.inkPatches.count, height: 1, bitDepth: bitDepth, sampleCount: 4, photometric: 5, samples: samples,
      profile: Self.p3)
    #expect(try process(wrong, Self.toPNG).report.messages == [Self.warning])
  }

  @Test("an sRGB profile of any name does not change the bytes")
  func srgb() throws {
    let plain = Fixture.bytes("photo-420.jpg")
    let segments = Container.profileSegments(Fixture.bytes("srgb.icc"))
    let configuration = ProcessingConfiguration(maxWidth: 100, compressionQuality: 0.8)
    let (without, with) = (
      try process(plain, configuration), try process(Container.jpeg(plain, adding: segments), configuration)
    )
    #expect(with.bytes == without.bytes && with.report.messages.isEmpty)
  }

  @Test("a broken profile causes a warning and leaves the image unconverted, and never crashes")
  func broken() throws {
    let plain = Fixture.bytes("photo-420.jpg")
    let without = try process(plain, Self.toPNG).bytes
    let cut = Array(Self.p3.prefix(200))
    for profile in [cut, [0], Array(Self.p3.prefix(128)) + [0, 0, 0, 0]] {
      let result = try process(Container.jpeg(plain, adding: Container.profileSegments(profile)), Self.toPNG)
      #expect(result.bytes == without && result.report.messages == [Self.warning])
    }
    let pieces = Container.profileSegments(Self.p3, pieceByteCount: 100)
    let missing = try process(Container.jpeg(plain, adding: pieces.dropLast()), Self.toPNG)
    #expect(missing.bytes == without && missing.report.messages == [Self.warning])
    for (seed, name) in ["display-p3.icc", "inks.icc", "gray-gamma-1.8.icc"].enumerated() {
      let noise = noiseSamples(4000)
      for round in 0..<60 {
        var profile = Fixture.bytes(name)
        for change in 0..<3 {
          let place = (Int(noise[round * 9 + change]) * 256 + Int(noise[round + seed])) % profile.count
          profile[place] ^= noise[round * 9 + change + 3] | 1
        }
        let image =
          name == "inks.icc" ? "photo-cmyk.jpg" : name == "display-p3.icc" ? "photo-444.jpg" : "photo-gray.jpg"
        let small = ProcessingConfiguration(maxWidth: 4, preferredFormat: .png)
        let damaged = Container.jpeg(Fixture.bytes(image), adding: Container.profileSegments(profile))
        _ = try process(damaged, small)
      }
    }
  }

  @Test("a PNG's profile that is too large, or is not zlib data, causes a warning")
  func brokenChunks() throws {
    let plain = try Self.patchedPNG(alpha: false)
    let large = [0x10, 0, 0, 0] + Self.p3.dropFirst(4)
    let claims = [0x00, 0x3F, 0, 0] + Self.p3.dropFirst(4)
    let bodies = [
      Container.profileChunk(large).1, Container.profileChunk(claims).1, [], Array("no zero".utf8),
      Array("name".utf8) + [0, 0, 1, 2, 3], Array("name".utf8) + [0, 7] + Container.stored(Self.p3),
    ]
    for body in bodies {
      let result = try process(Container.png(plain, adding: [("iCCP", body)]), Self.toPNG)
      #expect(result.report.messages == [Self.warning])
      #expect(try Pixels.decode(result.bytes) == Pixels.decode(plain))
    }
  }

  @Test("cHRM and gAMA form a profile if they differ from sRGB's, also one of them, and of gray images")
  func chromaticities() throws {
    let plain = try Self.patchedPNG(alpha: false)
    func chunk(_ numbers: [Int]) -> [UInt8] { numbers.flatMap { Container.bigEndian($0, byteCount: 4) } }
    let p3 = ("cHRM", chunk([31270, 32900, 68000, 32000, 26500, 69000, 15000, 6000]))
    let srgb = ("cHRM", chunk([31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000]))
    try Self.expectPatches(try process(Container.png(plain, adding: [p3]), Self.toPNG).bytes, tolerance: 1, "cHRM")
    let linear = ("gAMA", chunk([100_000]))
    for chunks in [[p3, linear], [srgb, linear], [linear]] {
      let brighter = try process(Container.png(plain, adding: chunks), Self.toPNG).bytes
      #expect(abs(try Pixels.decode(brighter).color(x: 20, y: 4)[1] - 188) <= 1)  // half of the light
    }
    let gray = try encodedImage([128], width: 1, height: 1, pixelFormat: .gray8)
    let light = try process(Container.png(gray, adding: [linear]), Self.toPNG).bytes
    #expect(try Pixels.decode(light).planes == [[188]])
    let likeSRGB = [[srgb, ("gAMA", chunk([45455]))], [("gAMA", chunk([43200]))]]
    for chunks in likeSRGB + [[p3, ("sRGB", [0])], [linear, ("sRGB", [0])]] {
      let result = try process(Container.png(plain, adding: chunks), Self.toPNG)
      #expect(try Pixels.decode(result.bytes) == Pixels.decode(plain))
    }
    for numbers in [[0, 0, 0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1], [Int](repeating: 0xFFFF_FFFF, count: 8)] {
      let result = try process(Container.png(plain, adding: [("cHRM", chunk(numbers))]), Self.toPNG)
      #expect(try Pixels.decode(result.bytes).format == .rgb8)
    }
  }

  @Test("the plan's working set bounds the memory of a conversion", arguments: ["photo-cmyk.jpg", "photo-444.jpg"])
  func memory(name: String) throws {
    let profile = Fixture.bytes(name == "photo-cmyk.jpg" ? "inks.icc" : "display-p3.icc")
    let bytes = Container.jpeg(Fixture.bytes(name), adding: Container.profileSegments(profile))
    var reader = ImageReader(limits: ImageLimits())
    _ = try reader.push(bytes.span.bytes, isLast: true)
    let plan = try reader.plan(Self.toPNG)
    #expect(try process(bytes, Self.toPNG).report.peakMemoryByteCount <= plan.workingSetByteCount)
  }

  @Test(
    "the mean color matches libvips' to within a level, over the shared collection",
    .enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
  func corpus() throws {
    for (name, expectation) in Corpus.expectations where expectation.want == "decode" && !name.hasPrefix("12-") {
      guard let expected = expectation.convertedMean, !name.contains("truncated"), !name.hasPrefix("10-") else {
        continue
      }
      let bytes = try Corpus.bytes(name)
      guard let format = ImageFormat.sniff(bytes.span.bytes), format.isDecodable else { continue }
      let mean = try Pixels.decode(try process(bytes, Self.toPNG).bytes).mean
      for (ours, theirs) in zip(mean, expected) { #expect(abs(ours - theirs) < 1, "\(name): \(mean), \(expected)") }
    }
  }
}
