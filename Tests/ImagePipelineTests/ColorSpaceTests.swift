import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Color spaces of results")
struct ColorSpaceTests {
  private static let p3 = Fixture.bytes("display-p3.icc")
  private static let gray = Fixture.bytes("gray-gamma-1.8.icc")
  private static let formats: [OutputFormat] =
    [.png, .jpeg, .webp] + (ImageFormat.avif.isEncodable && ImageFormat.avif.isDecodable ? [.avif] : [])

  /// Colors of sRGB and their values in Display P3, from the two standards' matrices and their common curve.
  private static let patches: [(srgb: [UInt8], p3: [Double])] = [
    ([200, 100, 50], [187.1, 105.4, 62]), ([255, 0, 0], [234, 51, 35]), ([128, 128, 128], [128, 128, 128]),
    ([0, 255, 0], [116.9, 251.2, 76.1]), ([60, 70, 200], [61.9, 69.7, 192.6]),
  ]

  private static func image(hasAlpha: Bool = false) throws -> [UInt8] {
    var row: [UInt8] = []
    for patch in patches {
      for _ in 0..<16 { row += patch.srgb + (hasAlpha ? [255] : []) }
    }
    return try encodedImage(
      [[UInt8]](repeating: row, count: 16).flatMap(\.self), width: 16 * patches.count, height: 16,
      pixelFormat: hasAlpha ? .rgba8 : .rgb8)
  }

  private static func configuration(
    _ space: ColorSpacePolicy?, _ format: OutputFormat = .png, alwaysEncode: Bool = true
  ) -> ProcessingConfiguration {
    ProcessingConfiguration(preferredFormat: format, alwaysEncode: alwaysEncode, colorSpace: space)
  }

  /// Returns the pixels as a reader without color management sees them: those of the file.
  private static func stored(_ file: [UInt8]) throws -> Pixels {
    try Pixels.decode(try process(file, configuration(.keep)).bytes)
  }

  private static func holds(_ bytes: [UInt8], _ text: String) -> Bool {
    let wanted = Array(text.utf8)
    return bytes.indices.dropLast(wanted.count).contains { Array(bytes[$0..<$0 + wanted.count]) == wanted }
  }

  @Test("a compact profile is recognized as the space that it describes")
  func compact() throws {
    let plain = Fixture.bytes("photo-420.jpg")
    for (target, gamut) in [(ColorTarget.srgb, "srgb"), (.displayP3, "display_p3")] {
      let profile = target.compactProfile
      #expect(profile.count < 500 && profile.count == Int(profile[2]) << 8 + Int(profile[3]))
      let tagged = Container.jpeg(plain, adding: Container.profileSegments(profile))
      let report = try process(tagged, ProcessingConfiguration(maxWidth: 20)).report
      #expect(report.input.gamut == gamut && report.output.gamut == "srgb" && report.messages.isEmpty)
    }
  }

  /// Checks the warning about the color space of a report.
  /// - `cause`: the reason; `nil` if there is no warning.
  private static func expect(
    _ cause: ColorObstacle?, of report: ProcessingReport, _ space: ColorSpacePolicy,
    location: SourceLocation = #_sourceLocation
  ) {
    let expected = cause.map { Warning.changedColorSpace(requested: space, because: $0) }
    let found = report.warnings.filter { $0.code == .colorSpaceChanged }
    #expect(found == (expected.map { [$0] } ?? []), sourceLocation: location)
  }

  @Test("colors are converted to Display P3, in each format", arguments: [false, true])
  func displayP3(hasAlpha: Bool) throws {
    let image = try Self.image(hasAlpha: hasAlpha)
    for format in Self.formats {
      let (file, report) = try process(image, Self.configuration(.displayP3, format))
      #expect(report.output.gamut == "display_p3" && report.messages.isEmpty)
      let read = try process(file, Self.configuration(nil))
      #expect(read.report.input.gamut == "display_p3", "\(format)")
      let (stored, shown) = (try Self.stored(file), try Pixels.decode(read.bytes))
      let tolerance: Double = format == .png ? 1 : format == .jpeg ? 4 : 9
      for (index, patch) in Self.patches.enumerated() {
        for (ours, exact) in zip(stored.color(x: index * 16 + 8, y: 8), patch.p3) {
          #expect(abs(ours - exact) <= tolerance, "\(format) \(index)")
        }
        for (ours, exact) in zip(shown.color(x: index * 16 + 8, y: 8), patch.srgb) {
          #expect(abs(ours - Double(exact)) <= 2 * tolerance + 2, "\(format) \(index)")
        }
      }
    }
  }

  @Test("the profile of an image is kept with its pixels, a known one in a short form")
  func kept() throws {
    let pixels = try Pixels.decode(try Self.image())
    var other = Self.p3
    other[Self.colorant(of: other) + 8] ^= 0x20  // a red that no standard has
    for (profile, gamut, name) in [
      (Self.p3, "display_p3", "Display P3"), (Fixture.bytes("srgb.icc"), "srgb", "sRGB"), (other, "other", nil),
    ] {
      let tagged = Container.png(try Self.image(), adding: [Container.profileChunk(profile)])
      for format in Self.formats {
        let (file, report) = try process(tagged, Self.configuration(.keep, format))
        #expect(report.output.gamut == gamut && report.messages.isEmpty)
        #expect(try process(file, Self.configuration(nil)).report.input.gamut == gamut)
        if format == .png { #expect(try Self.stored(file) == pixels) }
        guard format != .png else { continue }  // it is compressed there
        #expect(Self.holds(file, "acsp"))
        if let name { #expect(Self.holds(file, name.map { "\0\($0)" }.joined())) }
        if name == nil { #expect(file.count > profile.count) }
      }
    }
  }

  /// Returns the offset of the red colorant's data.
  private static func colorant(of profile: [UInt8]) -> Int {
    let entry = (0..<Int(profile[131])).map { 132 + 12 * $0 }.first {
      Array(profile[$0..<$0 + 4]) == Array("rXYZ".utf8)
    }
    return entry.map { Int(profile[$0 + 6]) << 8 + Int(profile[$0 + 7]) } ?? 0
  }

  @Test("an image without a profile gets none")
  func untagged() throws {
    let plain = try process(try Self.image(), Self.configuration(nil)).bytes
    #expect(try process(try Self.image(), Self.configuration(.keep)).bytes == plain)
    #expect(try process(try Self.image(), Self.configuration(.srgb)).bytes == plain)
  }

  @Test("gray stays gray, with its profile where the result can contain it")
  func grayImages() throws {
    let samples = (0...255).map { UInt8($0) }
    let plain = try encodedImage(samples, width: 256, height: 1, pixelFormat: .gray8)
    let tagged = Container.png(plain, adding: [Container.profileChunk(Self.gray)])
    let converted = try Pixels.decode(try process(tagged, Self.configuration(.srgb)).bytes)
    let (kept, report) = try process(tagged, Self.configuration(.keep))
    #expect(report.output.gamut == "other" && report.output.colorSpace == "gray")
    #expect(try Pixels.decode(try process(kept, Self.configuration(.srgb)).bytes) == converted)
    let (p3, p3Report) = try process(tagged, Self.configuration(.displayP3))
    #expect(try Pixels.decode(p3) == converted && p3Report.output.colorSpace == "gray")
    // WebP has no gray, and a filter makes it color.
    var sepia = Self.configuration(.keep)
    sepia.filters = [Filter(name: "sepia")]
    for configuration in [Self.configuration(.keep, .webp), sepia] {
      let (file, report) = try process(tagged, configuration)
      #expect(report.output.gamut == "srgb" && !Self.holds(file, "ICCP") && !Self.holds(file, "iCCP"))
      Self.expect(.gray, of: report, .keep)
    }
  }

  @Test("CMYK becomes RGB: sRGB, or Display P3")
  func cmyk() throws {
    let plain = Fixture.bytes("photo-cmyk.jpg")
    let tagged = Container.jpeg(plain, adding: Container.profileSegments(Fixture.bytes("inks.icc")))
    for image in [plain, tagged] {
      let srgb = try process(image, Self.configuration(.srgb))
      let kept = try process(image, Self.configuration(.keep))
      #expect(kept.bytes == srgb.bytes && kept.report.output.gamut == "srgb")
      Self.expect(nil, of: srgb.report, .srgb)
      Self.expect(.cmyk, of: kept.report, .keep)
      let p3 = try process(image, Self.configuration(.displayP3))
      Self.expect(nil, of: p3.report, .displayP3)
      let back = try process(p3.bytes, Self.configuration(.srgb))
      let (expected, found) = (try Pixels.decode(srgb.bytes), try Pixels.decode(back.bytes))
      for (x, y) in [(10, 10), (50, 40), (80, 60)] {
        for (ours, theirs) in zip(found.color(x: x, y: y), expected.color(x: x, y: y)) {
          #expect(abs(ours - theirs) <= 3)
        }
      }
    }
  }

  @Test("a GIF cannot have a profile, so it is sRGB")
  func gif() throws {
    let tagged = Container.png(try Self.image(), adding: [Container.profileChunk(Self.p3)])
    let plain = try process(tagged, Self.configuration(.srgb, .gif))
    for space in [ColorSpacePolicy.keep, .displayP3] {
      let (file, report) = try process(tagged, Self.configuration(space, .gif))
      #expect(file == plain.bytes && report.output.gamut == "srgb")
      Self.expect(.format, of: report, space)
      // Nothing is lost of an image that is sRGB, tagged or not.
      let srgb = Container.png(try Self.image(), adding: [Container.profileChunk(Fixture.bytes("srgb.icc"))])
      for image in [try Self.image(), srgb] {
        Self.expect(nil, of: try process(image, Self.configuration(space, .gif)).report, space)
      }
    }
  }

  @Test("PQ is tone-mapped to sRGB or Display P3, as it needs more than 8 bits")
  func hdr() throws {
    let pq = Container.png(try Self.image(), adding: [("cICP", [9, 16, 0, 1])])
    let srgb = try process(pq, Self.configuration(.srgb))
    #expect(srgb.report.input.gamut == "hdr")
    let kept = try process(pq, Self.configuration(.keep))
    #expect(kept.bytes == srgb.bytes)
    Self.expect(.hdr, of: kept.report, .keep)
    let p3 = try process(pq, Self.configuration(.displayP3)).report
    #expect(p3.output.gamut == "display_p3")
    Self.expect(nil, of: p3, .displayP3)
  }

  @Test("the background is converted to the space of the result")
  func background() throws {
    let red = Color(red: 255, green: 0, blue: 0)
    let tagged = Container.png(try Self.image(), adding: [Container.profileChunk(Self.p3)])
    for (space, expected) in [
      (ColorSpacePolicy.srgb, [255.0, 0, 0]), (.keep, [234, 51, 35]), (.displayP3, [234, 51, 35]),
    ] {
      let configuration = ProcessingConfiguration(
        maxWidth: 100, maxHeight: 100, preferredFormat: .png, pad: true, background: red, colorSpace: space)
      let pixels = try Self.stored(try process(tagged, configuration).bytes)
      for (ours, exact) in zip(pixels.color(x: 2, y: 2), expected) { #expect(abs(ours - exact) <= 1, "\(space)") }
    }
  }

  @Test("an image that has the requested colors is passed through with its profile")
  func passthrough() throws {
    let segments = Container.profileSegments(Self.p3)
    let jpeg = Container.jpeg(Fixture.bytes("photo-420.jpg"), adding: segments)
    let rotated = Container.jpeg(Fixture.bytes("orientation-6.jpg"), adding: segments)
    let png = Container.png(Fixture.bytes("photo.png"), adding: [Container.profileChunk(Self.p3)])
    let webp = Container.webp(Fixture.bytes("photo.webp"), width: 120, height: 80, profile: Self.p3)
    for (image, format) in [(jpeg, OutputFormat.jpeg), (rotated, .jpeg), (png, .png), (webp, .webp)] {
      for space in [ColorSpacePolicy.keep, .displayP3] {
        let configuration = Self.configuration(space, format, alwaysEncode: false)
        var reader = ImageReader(limits: ImageLimits())
        #expect(try reader.push(image.span.bytes, isLast: true).isComplete)
        let plan = try reader.plan(configuration)
        let (file, report) = try process(image, configuration)
        #expect(report.isPassedThrough && report.peakMemoryByteCount <= plan.workingSetByteCount)
        #expect(report.output.gamut == "display_p3" && file.count < image.count)
        let read = try process(file, Self.configuration(nil)).bytes
        #expect(try Pixels.decode(read) == Pixels.decode(try process(image, Self.configuration(nil)).bytes))
      }
      let converted = try process(image, Self.configuration(.srgb, format, alwaysEncode: false)).report
      #expect(!converted.isPassedThrough && converted.output.gamut == "srgb")
    }
    let plain = Fixture.bytes("photo-420.jpg")
    #expect(try process(plain, Self.configuration(.keep, .jpeg, alwaysEncode: false)).report.isPassedThrough)
    #expect(try !process(plain, Self.configuration(.displayP3, .jpeg, alwaysEncode: false)).report.isPassedThrough)
  }

  @Test("renditions of one image may have different spaces")
  func renditions() throws {
    let tagged = Container.jpeg(Fixture.bytes("photo-444.jpg"), adding: Container.profileSegments(Self.p3))
    let all = [ColorSpacePolicy.srgb, .keep, .displayP3].map { Self.configuration($0) }
    let (_, results) = try process(tagged, all)
    for (configuration, result) in zip(all, results) {
      #expect(try result.get().bytes == process(tagged, configuration).bytes)
    }
  }

  @Test("an animation has the profile once", arguments: [OutputFormat.png, .webp])
  func animation(format: OutputFormat) throws {
    let configuration = ProcessingConfiguration(preferredFormat: format, maxFrames: 0, colorSpace: .displayP3)
    let (file, report) = try process(Fixture.bytes("animated.webp"), configuration)
    #expect(report.output.frameCount > 1)
    let (_, read) = try process(file, ProcessingConfiguration(maxWidth: 20, maxFrames: 0))
    #expect(read.input.gamut == "display_p3" && read.input.frameCount == report.output.frameCount)
  }

  @Test("searches for a quality count the profile, too", arguments: [OutputFormat.jpeg, .webp], [nil, 60.0])
  func searches(format: OutputFormat, similarity: Double?) throws {
    let tagged = Container.jpeg(Fixture.bytes("photo-444.jpg"), adding: Container.profileSegments(Self.p3))
    var configuration = Self.configuration(.keep, format)
    configuration.compressionQuality = 0.9
    (configuration.targetSimilarity, configuration.maxBytes) = (similarity, similarity == nil ? 6000 : nil)
    var reader = ImageReader(limits: ImageLimits())
    #expect(try reader.push(tagged.span.bytes, isLast: true).isComplete)
    let estimate = try reader.plan(configuration).workingSetByteCount
    let (file, report) = try process(tagged, configuration)
    #expect(report.peakMemoryByteCount <= estimate && report.output.gamut == "display_p3")
    #expect(similarity != nil || file.count <= 6000)
    #expect(similarity == nil || report.similarity ?? 0 >= 60)
  }

  @Test("memory is counted, with a large profile too", arguments: [1, 300_000])
  func memory(padding: Int) throws {
    var profile = Self.p3
    profile[Self.colorant(of: profile) + 8] ^= 0x20
    profile += noiseSamples(padding)
    let size = Container.bigEndian(profile.count, byteCount: 4)
    profile.replaceSubrange(0..<4, with: size)
    let tagged = Container.jpeg(Fixture.bytes("photo-444.jpg"), adding: Container.profileSegments(profile))
    for format in Self.formats {
      for space in [ColorSpacePolicy.keep, .displayP3] {
        var reader = ImageReader(limits: ImageLimits())
        #expect(try reader.push(tagged.span.bytes, isLast: true).isComplete)
        let estimate = try reader.plan(Self.configuration(space, format)).workingSetByteCount
        let (file, report) = try process(tagged, Self.configuration(space, format))
        #expect(report.peakMemoryByteCount <= estimate && estimate <= 6 * report.peakMemoryByteCount, "\(format)")
        #expect(
          try process(file, Self.configuration(nil)).report.input.gamut == (space == .keep ? "other" : "display_p3"))
      }
    }
  }
}
