import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Format options")
struct FormatOptionsTests {
  /// With and without alpha, in planes, in RGB, in gray, and rotated.
  static let fixtures = ["photo-420.jpg", "photo-odd.jpg", "photo.png", "alpha.png", "gray.png", "orientation-6.jpg"]

  private static let jpegOptions: [JPEGOptions] = [false, true].flatMap { progressive in
    [false, true].flatMap { optimizes in
      [0, 1].map { JPEGOptions(isProgressive: progressive, optimizesHuffman: optimizes, restartRows: $0) }
    }
  }

  private func jpeg(_ name: String, _ options: JPEGOptions?) throws -> [UInt8] {
    let configuration = ProcessingConfiguration(
      maxWidth: 101, compressionQuality: 0.85, preferredFormat: .jpeg, alwaysEncode: true, jpeg: options)
    return try process(Fixture.bytes(name), configuration).bytes
  }

  @Test("the coding options of a JPEG do not change its image", arguments: fixtures, jpegOptions)
  func jpegCoding(name: String, options: JPEGOptions) throws {
    let plain = try jpeg(name, nil)
    let coded = try jpeg(name, options)
    #expect(try Pixels.decode(coded).planes == Pixels.decode(plain).planes)
    let (markers, restarts) = Self.markers(coded)
    #expect(markers.contains(0xC2) == options.isProgressive && markers.contains(0xDD) == (options.restartRows != 0))
    #expect((restarts > 0) == (options.restartRows != 0))
    // All symbols of a small image decide about its tables anyway.
    if options == JPEGOptions(isProgressive: false, optimizesHuffman: true, restartRows: 0) { #expect(coded == plain) }
  }

  /// Returns the markers of segments and the number of restart markers.
  private static func markers(_ file: [UInt8]) -> (segments: Set<UInt8>, restartCount: Int) {
    var segments: Set<UInt8> = []
    var restartCount = 0
    for (byte, next) in zip(file, file.dropFirst()) where byte == 0xFF {
      if (0xD0...0xD7).contains(next) { restartCount += 1 } else { segments.insert(next) }
    }
    return (segments, restartCount)
  }

  @Test(
    "chroma planes have the requested size, and are aligned in every orientation",
    arguments: ChromaSubsampling.allCases, 1...8)
  func chroma(subsampling: ChromaSubsampling, orientation: Int) throws {
    for container in ["jpg", "png"] {
      func pixels(_ orientation: Int) throws -> Pixels {
        let configuration = ProcessingConfiguration(
          maxWidth: 33, compressionQuality: 0.95, preferredFormat: .jpeg,
          jpeg: JPEGOptions(chromaSubsampling: subsampling))
        return try Pixels.decode(
          try process(Fixture.bytes("orientation-\(orientation).\(container)"), configuration).bytes)
      }
      let rotated = try pixels(orientation)
      let chroma = rotated.layout[1]
      #expect(chroma.width == (subsampling == .full ? 33 : 17) && chroma.height == (subsampling == .quarter ? 11 : 22))
      guard container == "png" else { continue }
      let upright = try pixels(1)
      for plane in 0..<3 {
        let worst = zip(upright.planes[plane], rotated.planes[plane]).map { abs(Int($0) - Int($1)) }.max() ?? 0
        #expect(worst <= 6, "plane \(plane)")
      }
    }
  }

  @Test("chroma subsampling follows the quality unless it is set")
  func chromaByQuality() throws {
    for (quality, asked, width) in [(0.89, nil, 51), (0.9, nil, 101), (0.5, .full, 101), (1, .half, 51)]
      as [(Double, ChromaSubsampling?, Int)]
    {
      let configuration = ProcessingConfiguration(
        maxWidth: 101, compressionQuality: quality, preferredFormat: .jpeg, jpeg: JPEGOptions(chromaSubsampling: asked))
      let result = try process(Fixture.bytes("photo-420.jpg"), configuration)
      #expect(try Pixels.decode(result.bytes).layout[1].width == width)
      #expect(result.report.compressionQuality == quality)
    }
  }

  private func png(_ name: String, _ options: PNGOptions?) throws -> [UInt8] {
    try process(
      Fixture.bytes(name),
      ProcessingConfiguration(maxWidth: 101, preferredFormat: .png, alwaysEncode: true, png: options)
    ).bytes
  }

  @Test("the coding options of a PNG do not change its image", arguments: fixtures, [false, true])
  func pngCoding(name: String, isInterlaced: Bool) throws {
    let plain = try Pixels.decode(try png(name, nil))
    for filter in PNGFilter.allCases {
      for level in [0, 1, 3, 4, 9] {
        let options = PNGOptions(compressionLevel: level, isInterlaced: isInterlaced, filter: filter)
        let coded = try png(name, options)
        #expect(try Pixels.decode(coded).planes == plain.planes, "\(filter) at \(level)")
        #expect(coded[28] == (isInterlaced ? 1 : 0))
      }
    }
  }

  @Test("images of all small sizes are interlaced correctly", arguments: 1...9)
  func interlacedSizes(width: Int) throws {
    for height in 1...9 {
      let samples = noiseSamples(width * height * 3)
      let image = try encodedImage(samples, width: width, height: height, pixelFormat: .rgb8)
      let configuration = ProcessingConfiguration(preferredFormat: .png, png: PNGOptions(isInterlaced: true))
      #expect(try Pixels.decode(try process(image, configuration).bytes).planes == [samples])
    }
  }

  @Test("a palette has at most the requested number of colors")
  func palettes() throws {
    for name in Self.fixtures {
      let plain = try Pixels.decode(try png(name, nil))
      for (colors, depth) in [(256, 8), (255, 8), (16, 4), (4, 2), (2, 1)] {
        for isInterlaced in [false, true] {
          let coded = try png(name, PNGOptions(isInterlaced: isInterlaced, paletteColors: colors))
          #expect(coded[24] <= depth && coded[25] == 3 && coded[28] == (isInterlaced ? 1 : 0), "\(name)")
          let again = try Pixels.decode(coded)
          #expect((again.format == .rgba8) == (plain.format == .rgba8), "\(name)")
          guard colors > 16 else { continue }
          for (ours, theirs) in zip(again.mean, plain.mean) { #expect(abs(ours - theirs) < 3, "\(name)") }
        }
      }
    }
  }

  @Test("an image with few colors keeps them in a palette", arguments: [13, 16, 256], [false, true])
  func exactPalette(colors: Int, isInterlaced: Bool) throws {
    let samples = (0..<40 * 30).flatMap { pixel in
      let color = pixel * pixel % 13
      return [20 * color, 255 - color, color, color < 3 ? 90 + color : 255].map { UInt8($0) }
    }
    let image = try encodedImage(samples, width: 40, height: 30, pixelFormat: .rgba8)
    let options = PNGOptions(isInterlaced: isInterlaced, paletteColors: colors)
    let coded = try process(image, ProcessingConfiguration(preferredFormat: .png, png: options)).bytes
    #expect(try Pixels.decode(coded).planes == [samples])
    // The length of PLTE: quadratic residues modulo 13 and 0.
    #expect(Array(coded[33..<41]) == [0, 0, 0, 21] + Array("PLTE".utf8))
  }

  private func webp(_ name: String, _ options: WebPOptions) throws -> Pixels {
    try Pixels.decode(
      try process(
        Fixture.bytes(name),
        ProcessingConfiguration(maxWidth: 101, preferredFormat: .webp, alwaysEncode: true, webp: options)
      ).bytes)
  }

  @Test("a lossless WebP equals the image, a near-lossless one almost", arguments: fixtures)
  func losslessWebP(name: String) throws {
    let plain = try Grid(decoding: try png(name, nil))
    let alpha = try Pixels.decode(try png(name, nil))
    for method in [0, 4, 6] {
      let lossless = try webp(name, WebPOptions(isLossless: true, method: method))
      if alpha.format == .rgba8 { #expect(lossless.planes == alpha.planes) }
      for (ours, theirs) in zip(lossless.mean, alpha.mean) { #expect(ours == theirs) }
    }
    for level in [0, 60] {
      let near = try webp(name, WebPOptions(nearLossless: level))
      for (ours, theirs) in zip(near.mean, alpha.mean) { #expect(abs(ours - theirs) < 2) }
    }
    #expect(plain.width == alpha.layout[0].width)
  }

  @Test("a lossless result reports no quality")
  func losslessQuality() throws {
    for configuration in [
      ProcessingConfiguration(compressionQuality: 0.5, preferredFormat: .png),
      ProcessingConfiguration(preferredFormat: .webp, webp: WebPOptions(isLossless: true)),
      ProcessingConfiguration(preferredFormat: .webp, webp: WebPOptions(nearLossless: 50)),
    ] {
      #expect(try process(Fixture.bytes("alpha.png"), configuration).report.compressionQuality == nil)
    }
  }

  @Test("options of another format than the result's are ignored", arguments: [OutputFormat.jpeg, .png, .webp])
  func otherFormats(format: OutputFormat) throws {
    let all = ProcessingConfiguration(
      compressionQuality: 0.8, preferredFormat: format,
      jpeg: format == .jpeg ? nil : JPEGOptions(isProgressive: true, chromaSubsampling: .half),
      png: format == .png ? nil : PNGOptions(isInterlaced: true, filter: .up),
      webp: format == .webp ? nil : WebPOptions(isLossless: true))
    let none = ProcessingConfiguration(compressionQuality: 0.8, preferredFormat: format)
    for name in ["photo-420.jpg", "alpha.png"] {
      #expect(try process(Fixture.bytes(name), all).bytes == process(Fixture.bytes(name), none).bytes)
    }
  }

  @Test("an image is passed through unless its format's options require another coding")
  func passing() throws {
    let table: [(String, ProcessingConfiguration, Bool)] = [
      ("photo-420.jpg", ProcessingConfiguration(), true),
      ("photo-420.jpg", ProcessingConfiguration(png: PNGOptions(isInterlaced: true)), true),
      ("photo-420.jpg", ProcessingConfiguration(jpeg: JPEGOptions(isProgressive: false, restartRows: 0)), true),
      ("photo-420.jpg", ProcessingConfiguration(jpeg: JPEGOptions(isProgressive: true)), false),
      ("photo-420.jpg", ProcessingConfiguration(jpeg: JPEGOptions(chromaSubsampling: .quarter)), false),
      ("photo.png", ProcessingConfiguration(png: PNGOptions(compressionLevel: 9)), false),
      ("photo.png", ProcessingConfiguration(png: PNGOptions(filter: .up)), false),
      ("photo.webp", ProcessingConfiguration(webp: WebPOptions(isLossless: true)), false),
      ("lossless.webp", ProcessingConfiguration(webp: WebPOptions(isLossless: true)), true),
      ("lossless.webp", ProcessingConfiguration(compressionQuality: 0.5, webp: WebPOptions(isLossless: true)), true),
      ("lossless.webp", ProcessingConfiguration(webp: WebPOptions(nearLossless: 20)), false),
    ]
    for (name, configuration, isPassed) in table {
      let report = try process(Fixture.bytes(name), configuration).report
      #expect(report.isPassedThrough == isPassed, "\(name) with \(configuration)")
    }
  }

  static let demanding: [ProcessingConfiguration] =
    [
      ProcessingConfiguration(preferredFormat: .jpeg, jpeg: JPEGOptions(isProgressive: true)),
      ProcessingConfiguration(preferredFormat: .jpeg, jpeg: JPEGOptions(optimizesHuffman: true)),
      ProcessingConfiguration(preferredFormat: .jpeg, jpeg: JPEGOptions(isProgressive: true, chromaSubsampling: .half)),
      ProcessingConfiguration(preferredFormat: .png, png: PNGOptions(compressionLevel: 9)),
      ProcessingConfiguration(preferredFormat: .png, png: PNGOptions(isInterlaced: true)),
      ProcessingConfiguration(preferredFormat: .webp, webp: WebPOptions(isLossless: true)),
      ProcessingConfiguration(preferredFormat: .webp, webp: WebPOptions(nearLossless: 40)),
      ProcessingConfiguration(preferredFormat: .webp, webp: WebPOptions(method: 6)),
      ProcessingConfiguration(compressionQuality: 0.95, preferredFormat: .jpeg, maxBytes: 4000),
      ProcessingConfiguration(preferredFormat: .webp, maxBytes: 80_000),
      ProcessingConfiguration(preferredFormat: .webp, maxBytes: 3000, allowSmallerDimensions: true),
      ProcessingConfiguration(preferredFormat: .png, maxBytes: 3000, allowSmallerDimensions: true),
      ProcessingConfiguration(preferredFormat: .jpeg, maxBytes: 1500, allowSmallerDimensions: true),
      ProcessingConfiguration(
        preferredFormat: .webp, maxBytes: 2000, allowSmallerDimensions: true, webp: WebPOptions(isLossless: true)),
      ProcessingConfiguration(preferredFormat: .png, png: PNGOptions(isInterlaced: true, paletteColors: 256)),
    ]

  @Test("the plan's working set is never below the memory used", arguments: demanding)
  func estimateHolds(configuration: ProcessingConfiguration) throws {
    let noise = try encodedImage(noiseSamples(300 * 200 * 4), width: 300, height: 200, pixelFormat: .rgba8)
    for (name, bytes) in Self.fixtures.map({ ($0, Fixture.bytes($0)) }) + [("noise", noise)] {
      var reader = ImageReader(limits: ImageLimits())
      #expect(try reader.push(bytes.span.bytes, isLast: true).isComplete)
      let estimate = try reader.plan(configuration).workingSetByteCount
      let peak = try process(bytes, configuration).report.peakMemoryByteCount
      #expect(peak <= estimate, "\(name)")
    }
  }
}
