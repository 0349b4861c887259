import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Bits per sample of results")
struct BitDepthTests {
  /// Images with more than 8 bits: gray, color and alpha; interlaced; of 12 bits.
  private static let images = [
    "gray-16.png", "pngsuite-basn2c16.png", "deep-alpha.png", "deep.pgm",
  ]
  private static let formats: [OutputFormat] = [.png] + (ImageFormat.jxl.isEncodable ? [.jxl] : [])
  private static let writesDeepAVIF = ImageFormat.avif.takes(.rgb16) && ImageFormat.avif.isDecodable

  private static func configuration(
    _ format: OutputFormat = .png, bitDepth: Int? = 16, maxWidth: Int? = nil, space: ColorSpacePolicy? = nil
  ) -> ProcessingConfiguration {
    ProcessingConfiguration(
      maxWidth: maxWidth, preferredFormat: format, colorSpace: space, png: PNGOptions(bitDepth: bitDepth),
      avif: AVIFOptions(bitDepth: bitDepth == nil ? nil : 10), jxl: JXLOptions(isLossless: true, bitDepth: bitDepth))
  }

  /// Returns the samples of an image of one plane.
  private static func samples(_ pixels: Pixels) -> [Int] {
    let layout = pixels.layout[0]
    return (0..<layout.height).flatMap { y in
      (0..<layout.width).flatMap { x in
        (0..<pixels.format.channelCount).map { pixels.sample(x: x, y: y, channel: $0) }
      }
    }
  }

  /// Returns whether samples of 16 bits are within `tolerance` levels of 8 bits of those of 8.
  private static func agree(_ deep: [UInt8], _ shallow: [UInt8], within tolerance: Int = 0) throws -> Bool {
    let (deep, shallow) = (try Pixels.decode(deep), try Pixels.decode(shallow))
    guard deep.format.is16Bit, deep.format == shallow.format.deep, deep.layout == shallow.layout else { return false }
    return zip(samples(deep), samples(shallow)).allSatisfy { abs(($0 * 255 + 32895) >> 16 - $1) <= tolerance }
  }

  /// Returns the properties of a file.
  private static func info(_ file: [UInt8]) throws -> ImageInfo {
    try process(file, ProcessingConfiguration(maxWidth: 8)).report.input
  }

  /// A slope whose neighbors differ by less than a level of 8 bits.
  private static func slope(_ format: PixelFormat = .rgb16, width: Int = 96, height: Int = 24) throws -> [UInt8] {
    var samples: [UInt8] = []
    for y in 0..<height {
      for x in 0..<width {
        for channel in 0..<format.channelCount {
          let sample = channel == 3 ? UInt16(65535 - x * 100) : UInt16(9000 + 61 * x + 17 * y + 5000 * channel)
          withUnsafeBytes(of: sample) { samples += $0 }
        }
      }
    }
    return try encodedImage(samples, width: width, height: height, pixelFormat: format)
  }

  @Test("a lossless result has every sample of the image", arguments: images, [false, true])
  func lossless(name: String, isInterlaced: Bool) throws {
    let image = Fixture.bytes(name)
    for format in Self.formats {
      var configuration = Self.configuration(format, space: .keep)
      configuration.alwaysEncode = true
      configuration.png?.isInterlaced = isInterlaced
      let (file, report) = try process(image, configuration)
      #expect(report.output.bitDepth == 16 && report.messages.isEmpty, "\(format): \(report.messages)")
      #expect(try Pixels.decode(file).planes == Pixels.decode(image).planes, "\(format)")
    }
  }

  @Test("the samples are those of a result of 8 bits before they are rounded", arguments: images)
  func reduced(name: String) throws {
    let image = Fixture.bytes(name)
    for format in Self.formats {
      let deep = try process(image, Self.configuration(format, maxWidth: 20))
      let shallow = try process(image, Self.configuration(format, bitDepth: nil, maxWidth: 20))
      #expect(deep.report.output.bitDepth == 16 && shallow.report.output.bitDepth == 8)
      // Alpha is divided with more bits.
      #expect(try Self.agree(deep.bytes, shallow.bytes, within: name == "deep-alpha.png" ? 1 : 0), "\(format)")
    }
  }

  @Test("a slope keeps its steps when it is reduced")
  func steps() throws {
    let result = try Pixels.decode(try process(Self.slope(), Self.configuration(maxWidth: 48)).bytes)
    for x in 4..<44 {
      let expected = 9000 + 61 * (2 * x) + 31 + 17 * 13
      #expect(abs(result.sample(x: x, y: 6) - expected) < 64, "\(x): \(result.sample(x: x, y: 6)) \(expected)")
    }
  }

  @Test("results are turned, padded and converted with 16 bits", arguments: [PixelFormat.gray16, .rgb16, .rgba16])
  func stages(pixels: PixelFormat) throws {
    let profile = Fixture.bytes(pixels == .gray16 ? "gray-gamma-1.8.icc" : "display-p3.icc")
    let image = Container.png(try Self.slope(pixels), adding: [Container.profileChunk(profile)])
    func configuration(_ bitDepth: Int?, rotation: Int, pad: Bool) -> ProcessingConfiguration {
      var configuration = Self.configuration(bitDepth: bitDepth, maxWidth: 40)
      (configuration.maxHeight, configuration.rotation, configuration.pad) = (40, rotation, pad)
      configuration.background = Color(red: 1, green: 128, blue: 254)
      return configuration
    }
    for (rotation, pad) in [(0, false), (90, false), (0, true), (270, true)] {
      let (deep, shallow) = (
        configuration(16, rotation: rotation, pad: pad), configuration(nil, rotation: rotation, pad: pad)
      )
      let (file, report) = try process(image, deep)
      #expect(report.messages.isEmpty && report.output.bitDepth == 16)
      #expect(try Self.agree(file, process(image, shallow).bytes, within: 1), "\(rotation) \(pad)")
    }
  }

  @Test("an image of 8 bits keeps them", arguments: ["photo.png", "alpha.png", "gray.png", "photo-420.jpg"])
  func shallow(name: String) throws {
    for format in Self.formats + (Self.writesDeepAVIF ? [.avif] : []) {
      let asked = try process(Fixture.bytes(name), Self.configuration(format, maxWidth: 30))
      let plain = try process(Fixture.bytes(name), Self.configuration(format, bitDepth: nil, maxWidth: 30))
      #expect(asked.bytes == plain.bytes && asked.report.messages.isEmpty && asked.report.output.bitDepth == 8)
    }
  }

  @Test("AVIF has 10 bits", .enabled(if: writesDeepAVIF), arguments: [PixelFormat.rgb16, .rgba16], [0.7, 1])
  func avif(pixels: PixelFormat, quality: Double) throws {
    let image = try Self.slope(pixels)
    var configuration = Self.configuration(.avif)
    configuration.compressionQuality = quality
    let (file, report) = try process(image, configuration)
    #expect(report.output.bitDepth == 10 && report.messages.isEmpty)
    let (source, result) = (try Pixels.decode(image), try Pixels.decode(file))
    #expect(result.format == pixels)
    let differences = zip(Self.samples(source), Self.samples(result)).map { abs($0 - $1) }
    #expect(try #require(differences.max()) <= (quality == 1 ? 3 : 24) * 65535 / 1023, "\(differences.max() ?? 0)")
    // 8 bits would be off by 64 in the mean.
    #expect(quality < 1 || differences.reduce(0, +) / differences.count < 56)
    #expect(try Self.info(file).bitDepth == 10)
  }

  @Test("PQ and HLG are kept, as code points", arguments: [[9, 16], [12, 16], [9, 18]] as [[UInt8]])
  func hdr(codes: [UInt8]) throws {
    let image = Container.png(try Self.slope(), adding: [("cICP", codes + [0, 1])])
    for format in Self.formats + (Self.writesDeepAVIF ? [.avif] : []) {
      let (file, report) = try process(image, Self.configuration(format, space: .keep))
      #expect(report.output.gamut == "hdr" && report.messages.isEmpty, "\(format): \(report.messages)")
      let info = try Self.info(file)
      #expect(info.gamut == "hdr" && info.bitDepth == (format == .avif ? 10 : 16))
      // As both are shown, and so have the same code points.
      let plain = ProcessingConfiguration(preferredFormat: .png, alwaysEncode: true)
      let (shown, expected) = (try process(file, plain).bytes, try process(image, plain).bytes)
      let differences = zip(Self.samples(try .decode(shown)), Self.samples(try .decode(expected))).map { abs($0 - $1) }
      #expect(try #require(differences.max()) <= (format == .avif ? 4 : 0), "\(format)")
      if format != .avif { #expect(try Pixels.decode(file).planes == Pixels.decode(image).planes) }
    }
  }

  @Test("the background's white is the reference white of PQ")
  func background() throws {
    let image = Container.png(try Self.slope(), adding: [("cICP", [9, 16, 0, 1])])
    var configuration = Self.configuration(maxWidth: 60, space: .keep)
    (configuration.maxHeight, configuration.pad) = (60, true)
    let result = try Pixels.decode(try process(image, configuration).bytes)
    for channel in 0..<3 {
      // 203 cd/m² is 0.5807 of PQ.
      #expect(abs(Double(result.sample(x: 1, y: 1, channel: channel)) / 65535 - 0.5807) < 0.01)
    }
  }

  @Test("a white region has the reference white of PQ, and is white in sRGB")
  func region() throws {
    let image = Container.png(try Self.slope(), adding: [("cICP", [9, 16, 0, 1])])
    var configuration = Self.configuration(space: .keep)
    configuration.regions = [
      Region(area: Crop(unit: .fractions, width: 0.5, height: 1), color: Color(red: 255, green: 255, blue: 255))
    ]
    let kept = try Pixels.decode(try process(image, configuration).bytes)
    #expect(abs(Double(kept.sample(x: 1, y: 1)) / 65535 - 0.5807) < 0.01)
    configuration.colorSpace = nil
    let shown = try Pixels.decode(try process(image, configuration).bytes)
    #expect(shown.sample(x: 1, y: 1) >= 254 * 257)
  }

  @Test("gray PQ becomes sRGB where it is padded")
  func grayHDR() throws {
    let image = Container.png(try Self.slope(.gray16), adding: [("cICP", [9, 16, 0, 1])])
    #expect(try process(image, Self.configuration(space: .keep)).report.output.gamut == "hdr")
    var configuration = Self.configuration(maxWidth: 60, space: .keep)
    (configuration.maxHeight, configuration.pad) = (60, true)
    let report = try process(image, configuration).report
    #expect(report.output.gamut == "srgb" && report.warnings.map(\.code).contains(.colorSpaceChanged))
  }

  @Test("what works with 8 bits makes the result one of 8, and says so")
  func obstacles() throws {
    let image = try Self.slope()
    func expect(
      _ obstacle: DepthObstacle, _ set: (inout ProcessingConfiguration) throws -> Void,
      location: SourceLocation = #_sourceLocation
    ) throws {
      var configuration = Self.configuration(maxWidth: 50)
      try set(&configuration)
      let report = try process(image, configuration).report
      #expect(report.output.bitDepth == 8, sourceLocation: location)
      #expect(
        report.warnings.filter { $0.code == .bitDepthReduced } == [.reducedBitDepth(because: obstacle)],
        sourceLocation: location)
    }
    try expect(.filters) { $0.filters = [Filter(name: "sepia", intensity: 1)] }
    try expect(.filters) { $0.sharpenReduced = 2 }
    try expect(.palette) { $0.png?.paletteColors = 16 }
    try expect(.search) { $0.maxBytes = 100_000 }
  }

  @Test("colors that need more than 8 bits become sRGB with them")
  func hdrObstacle() throws {
    let image = Container.png(try Self.slope(), adding: [("cICP", [9, 16, 0, 1])])
    for configuration in [Self.configuration(bitDepth: nil, space: .keep), Self.configuration(.jpeg, space: .keep)] {
      let report = try process(image, configuration).report
      #expect(report.output.gamut == "srgb" && report.warnings.map(\.code) == [.colorSpaceChanged])
    }
  }

  @Test("the facts are those of a result of 8 bits", arguments: images)
  func facts(name: String) throws {
    var (deep, shallow) = (Self.configuration(maxWidth: 32), Self.configuration(bitDepth: nil, maxWidth: 32))
    (deep.facts, shallow.facts) = (true, true)
    let image = Fixture.bytes(name)
    let (found, expected) = (try process(image, deep).report.facts, try process(image, shallow).report.facts)
    let (one, other) = (try #require(found), try #require(expected))
    #expect(one.blurHash == other.blurHash && one.isGray == other.isGray && one.isOpaque == other.isOpaque)
  }
}
