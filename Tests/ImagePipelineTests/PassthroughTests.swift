import ImageCodecs
import ImagePipeline
import InMemoryTracing
import TestSupport
import Testing
import Tracing

@Suite("Passthrough")
struct PassthroughTests {
  /// An image, its configuration, and the expected passthrough.
  struct Case: Sendable, CustomTestStringConvertible {
    var name: String
    var configuration = ProcessingConfiguration()
    var passthrough: Passthrough
    var testDescription: String { "\(name) \(passthrough)" }
  }

  private static func plan(
    _ bytes: [UInt8], _ configuration: ProcessingConfiguration, limits: ImageLimits = ImageLimits()
  ) throws -> Plan {
    var reader = ImageReader(limits: limits)
    reader.configurations = [configuration]
    #expect(try reader.push(bytes.span.bytes, isLast: true).isComplete)
    return try reader.plan(configuration)
  }

  private static func asked(_ quality: Double, _ format: OutputFormat = .original) -> ProcessingConfiguration {
    ProcessingConfiguration(compressionQuality: quality, preferredFormat: format)
  }

  @Test(
    "an image is passed through if encoding it again has no benefit",
    arguments: [
      Case(name: "photo-420.jpg", passthrough: .copied), Case(name: "photo-444.jpg", passthrough: .copied),
      Case(name: "photo-progressive.jpg", passthrough: .copied), Case(name: "photo-gray.jpg", passthrough: .copied),
      // The fixtures have quality 85.
      Case(name: "photo-420.jpg", configuration: asked(0.85), passthrough: .copied),
      Case(name: "photo-420.jpg", configuration: asked(0.84), passthrough: .decoded),
      Case(name: "photo-gray.jpg", configuration: asked(0.85), passthrough: .copied),
      Case(name: "photo-444.jpg", configuration: asked(0.9), passthrough: .copied),
      Case(name: "photo-444.jpg", configuration: asked(0.89), passthrough: .decoded),
      Case(name: "photo-422.jpg", configuration: asked(0.89), passthrough: .decoded),
      Case(name: "photo-420.jpg", configuration: asked(1, .jpeg), passthrough: .copied),
      Case(name: "photo-420.jpg", configuration: asked(1, .png), passthrough: .decoded),
      Case(name: "photo-arithmetic.jpg", passthrough: .decoded), Case(name: "photo-cmyk.jpg", passthrough: .decoded),
      Case(name: "photo.png", configuration: asked(0.1), passthrough: .copied),
      Case(name: "palette.png", passthrough: .copied), Case(name: "bilevel.png", passthrough: .copied),
      Case(name: "alpha.png", configuration: asked(1, .jpeg), passthrough: .decoded),
      Case(name: "gray-16.png", passthrough: .decoded), Case(name: "pngsuite-basi2c08.png", passthrough: .decoded),
      Case(name: "photo.webp", passthrough: .copied), Case(name: "alpha.webp", passthrough: .copied),
      Case(name: "photo.webp", configuration: asked(0.85), passthrough: .copied),
      Case(name: "photo.webp", configuration: asked(0.6), passthrough: .decoded),
      Case(name: "lossless.webp", passthrough: .copied),
      Case(name: "lossless.webp", configuration: asked(0.99), passthrough: .decoded),
      Case(name: "animated.webp", passthrough: .decoded), Case(name: "photo.gif", passthrough: .decoded),
      Case(name: "photo-420.jpg", configuration: .init(maxWidth: 240, maxHeight: 160), passthrough: .copied),
      Case(name: "photo-420.jpg", configuration: .init(maxWidth: 239), passthrough: .decoded),
      Case(name: "photo-420.jpg", configuration: .init(maxWidth: 480, allowUpscale: true), passthrough: .decoded),
      Case(
        name: "photo-420.jpg", configuration: .init(maxWidth: 240, maxHeight: 160, resizeMode: .fill),
        passthrough: .copied),
      Case(
        name: "photo-420.jpg", configuration: .init(maxWidth: 160, maxHeight: 160, resizeMode: .fill),
        passthrough: .decoded
      ),
      Case(
        name: "photo-420.jpg", configuration: .init(maxWidth: 300, maxHeight: 300, pad: true), passthrough: .decoded),
      Case(
        name: "photo-420.jpg", configuration: .init(crop: Crop(x: 1, width: 239, height: 160)), passthrough: .decoded),
      Case(
        name: "photo-420.jpg", configuration: .init(crop: Crop(unit: .fractions, width: 1, height: 1)),
        passthrough: .copied
      ),
      Case(name: "photo-420.jpg", configuration: .init(filters: [Filter(name: "sepia")]), passthrough: .decoded),
      Case(
        name: "photo-420.jpg", configuration: .init(filters: [Filter(name: "sepia", intensity: 0)]),
        passthrough: .copied),
      Case(name: "photo-420.jpg", configuration: .init(tolerateTruncation: true), passthrough: .decoded),
      Case(name: "photo-420.jpg", configuration: .init(tolerateDamage: true), passthrough: .decoded),
      Case(name: "photo-420.jpg", configuration: .init(alwaysEncode: true), passthrough: .decoded),
      Case(name: "photo-420.jpg", configuration: .init(rotation: 90), passthrough: .rotated),
      Case(name: "photo-progressive.jpg", configuration: .init(flipVertical: true), passthrough: .rotated),
      Case(name: "photo-420.jpg", configuration: .init(maxWidth: 160, rotation: 90), passthrough: .rotated),
      Case(name: "photo-420.jpg", configuration: .init(maxWidth: 159, rotation: 90), passthrough: .decoded),
      Case(name: "photo-420.jpg", configuration: .init(rotation: 90, alwaysEncode: true), passthrough: .decoded),
      Case(name: "photo-odd.jpg", configuration: .init(rotation: 90), passthrough: .decoded),
      Case(name: "photo.png", configuration: .init(rotation: 90), passthrough: .decoded),
      Case(name: "orientation-1.jpg", passthrough: .copied), Case(name: "orientation-6.jpg", passthrough: .rotated),
      Case(name: "orientation-6.jpg", configuration: .init(rotation: 270), passthrough: .copied),
      Case(name: "orientation-6.jpg", configuration: .init(alwaysEncode: true), passthrough: .decoded),
      Case(name: "orientation-6.png", passthrough: .decoded), Case(name: "orientation-1.webp", passthrough: .copied),
      Case(name: "orientation-6.webp", passthrough: .decoded),
    ])
  func passages(test: Case) throws {
    let bytes = Fixture.bytes(test.name)
    let plan = try Self.plan(bytes, test.configuration)
    #expect(plan.passthrough == test.passthrough)
    let (result, report) = try process(bytes, test.configuration)
    #expect(report.isPassedThrough == (test.passthrough != .decoded))
    #expect(report.output == plan.outputInfo)
    #expect(report.outputByteCount == UInt64(result.count) && report.inputByteCount <= UInt64(bytes.count))
    #expect(report.peakMemoryByteCount <= plan.workingSetByteCount)
    for windowByteCount in [1, 7, 4096] {
      #expect(try process(bytes, test.configuration, windowByteCount: windowByteCount).bytes == result)
    }
    guard test.passthrough != .decoded else { return }
    let again = try Self.plan(result, ProcessingConfiguration())
    #expect(again.passthrough == .copied && again.input.size == report.output.size && again.input.orientation == 1)
    #expect(again.input.bitDepth == report.output.bitDepth && again.input.colorSpace == report.output.colorSpace)
  }

  private static let losslessJXL = ProcessingConfiguration(preferredFormat: .jxl, jxl: JXLOptions(isLossless: true))

  @Test(
    "a JPEG becomes a lossless JPEG XL of fewer bytes, with the same pixels", .enabled(if: ImageFormat.jxl.isDecodable),
    arguments: ["photo-420.jpg", "photo-422.jpg", "photo-444.jpg", "photo-progressive.jpg", "photo-gray.jpg"])
  func recompression(name: String) throws {
    let bytes = Fixture.bytes(name)
    let plan = try Self.plan(bytes, Self.losslessJXL)
    #expect(plan.passthrough == .recompressed)
    let (result, report) = try process(bytes, Self.losslessJXL)
    #expect(report.isPassedThrough && report.output == plan.outputInfo && report.output.format == "jxl")
    #expect(report.outputByteCount == UInt64(result.count) && report.peakMemoryByteCount <= plan.workingSetByteCount)
    #expect(try result.count < process(bytes, ProcessingConfiguration()).bytes.count)
    for windowByteCount in [1, 7, 4096] {
      #expect(try process(bytes, Self.losslessJXL, windowByteCount: windowByteCount).bytes == result)
    }
    let png = ProcessingConfiguration(preferredFormat: .png)
    let (ours, theirs) = (try Pixels.decode(process(result, png).bytes), try Pixels.decode(process(bytes, png).bytes))
    #expect(ours.planes.map(\.count) == theirs.planes.map(\.count))
    for (ours, theirs) in zip(ours.mean, theirs.mean) { #expect(abs(ours - theirs) < 1.5) }
  }

  @Test(
    "pixels are encoded where a JPEG cannot be recompressed", .enabled(if: ImageFormat.jxl.isDecodable),
    arguments: [
      Case(name: "photo-420.jpg", configuration: .init(maxWidth: 100), passthrough: .decoded),
      Case(name: "photo-420.jpg", configuration: .init(alwaysEncode: true), passthrough: .decoded),
      Case(name: "photo-420.jpg", configuration: .init(jxl: JXLOptions(isLossless: false)), passthrough: .decoded),
      Case(name: "photo-420.jpg", configuration: .init(maxBytes: 1_000_000), passthrough: .decoded),
      Case(name: "photo-420.jpg", configuration: .init(tolerateDamage: true), passthrough: .decoded),
      Case(name: "orientation-6.jpg", passthrough: .decoded), Case(name: "photo-cmyk.jpg", passthrough: .decoded),
      Case(name: "photo.png", passthrough: .decoded),
    ])
  func notRecompressed(test: Case) throws {
    var configuration = test.configuration
    configuration.preferredFormat = .jxl
    configuration.jxl = configuration.jxl ?? JXLOptions(isLossless: true)
    let bytes = Fixture.bytes(test.name)
    #expect(try Self.plan(bytes, configuration).passthrough == test.passthrough)
    #expect(try !process(bytes, configuration).report.isPassedThrough)
  }

  @Test("a JPEG that is cut or damaged is not recompressed", .enabled(if: ImageFormat.jxl.isDecodable))
  func damagedRecompression() throws {
    let bytes = Fixture.bytes("photo-420.jpg")
    for count in [bytes.count / 2, bytes.count - 100] {
      let error = #expect(throws: PipelineError.self) { try process(Array(bytes.prefix(count)), Self.losslessJXL) }
      #expect(error?.code == .truncatedImage || error?.code == .corruptImage)
    }
    // The end marker alone is added, as in a copy.
    let completed = try process(Array(bytes.dropLast(2)), Self.losslessJXL)
    #expect(completed.report.isPassedThrough && completed.report.warnings.count == 1)
    #expect(try completed.bytes == process(bytes, Self.losslessJXL).bytes)
    var generator = SeededGenerator(seed: 9)
    var failureCount = 0
    for _ in 0..<20 {
      var damaged = bytes
      for _ in 0..<20 {
        damaged[.random(in: 700..<bytes.count, using: &generator)] = .random(in: 0...255, using: &generator)
      }
      // Other damage gives another image.
      do { _ = try process(damaged, Self.losslessJXL) } catch {
        failureCount += 1
        #expect(error.code == .truncatedImage || error.code == .corruptImage)
      }
    }
    #expect(failureCount > 0)
  }

  @Test(
    "an image that is passed through has the same colors as an encoded one",
    arguments: ["photo.png", "photo-444.jpg", "photo.webp"])
  func sameColors(name: String) throws {
    let copied = try process(Fixture.bytes(name), ProcessingConfiguration())
    let encoded = try process(Fixture.bytes(name), ProcessingConfiguration(alwaysEncode: true))
    #expect(copied.report.isPassedThrough && !encoded.report.isPassedThrough)
    for (ours, theirs) in zip(try Pixels.decode(copied.bytes).mean, try Pixels.decode(encoded.bytes).mean) {
      #expect(abs(ours - theirs) < 1.5)
    }
  }

  @Test("an sRGB profile is dropped; another one prevents passthrough")
  func profiles() throws {
    for (profile, passthrough) in [("srgb.icc", Passthrough.copied), ("display-p3.icc", .decoded)] {
      let block = Fixture.bytes(profile)
      let images = [
        Container.jpeg(
          Fixture.bytes("photo-420.jpg"),
          adding: Container.profileSegments(block).map { (marker: $0.0, body: $0.1) }),
        Container.png(Fixture.bytes("photo.png"), adding: [Container.profileChunk(block)]),
        Container.webp(Fixture.bytes("photo.webp"), width: 120, height: 80, profile: block),
      ]
      for image in images {
        #expect(try Self.plan(image, ProcessingConfiguration()).passthrough == passthrough)
        let result = try process(image, ProcessingConfiguration()).bytes
        #expect(try Self.plan(result, ProcessingConfiguration()).passthrough == .copied)
      }
      if passthrough == .copied {
        for (image, name) in zip(images, ["photo-420.jpg", "photo.png", "photo.webp"]) {
          let plain = try process(Fixture.bytes(name), ProcessingConfiguration()).bytes
          #expect(try process(image, ProcessingConfiguration()).bytes == plain)
        }
      }
    }
  }

  @Test("only copyright is kept if requested")
  func rights() throws {
    let block = MetadataTests.exif(isBig: true)
    let jpeg = Container.jpeg(
      Fixture.bytes("photo-420.jpg"), adding: [(marker: 0xE1, body: Array("Exif\0\0".utf8) + block)])
    let png = Container.png(Fixture.bytes("photo.png"), adding: [("eXIf", block)])
    // Both files have a rotated orientation; rotated back, the JPEG is copied. A PNG might have metadata after its
    // data.
    for (image, rotations) in [(jpeg, [0: Passthrough.rotated, 270: .copied]), (png, [0: .decoded, 270: .decoded])] {
      for (rotation, passthrough) in rotations {
        let configuration = ProcessingConfiguration(rotation: rotation, metadata: .keepCopyright)
        let plan = try Self.plan(image, configuration)
        #expect(plan.passthrough == passthrough)
        let (result, report) = try process(image, configuration)
        #expect(report.peakMemoryByteCount <= plan.workingSetByteCount)
        for text in ["Anna Beispiel", "All rights reserved"] { #expect(holds(result, text)) }
        for text in ["Kamera", "GPS"] { #expect(!holds(result, text)) }
        #expect(try Self.plan(result, configuration).input.orientation == 1)
      }
    }
  }

  private func holds(_ bytes: [UInt8], _ text: String) -> Bool {
    let wanted = Array(text.utf8)
    return bytes.indices.dropLast(wanted.count).contains { Array(bytes[$0..<$0 + wanted.count]) == wanted }
  }

  @Test("rotating blocks shows an image upright", arguments: 2...8)
  func turnsUpright(value: Int) throws {
    let rotated = try process(Fixture.bytes("orientation-\(value).jpg"), ProcessingConfiguration())
    #expect(rotated.report.isPassedThrough && rotated.report.output.size == PixelSize(width: 48, height: 32))
    let pixels = try Pixels.decode(rotated.bytes)
    let corners = try #require(Fixture.named("orientation-1.png").corners)
    for (place, corner) in zip([(2, 2), (45, 2), (2, 29), (45, 29)], corners) {
      for (ours, theirs) in zip(pixels.color(x: place.0, y: place.1), corner) {
        #expect(abs(ours - Double(theirs)) < 24, "\(place)")
      }
    }
  }

  @Test("a rotation that would buffer too much decodes the image instead")
  func turnLimit() throws {
    let bytes = Fixture.bytes("photo-444.jpg")
    let configuration = ProcessingConfiguration(rotation: 90)
    let plan = try Self.plan(bytes, configuration)
    #expect(plan.passthrough == .rotated)
    let tight = ImageLimits(memory: Int(plan.workingSetByteCount) * 4 - 1)
    #expect(try Self.plan(bytes, configuration, limits: tight).passthrough == .decoded)
    let result = try process(bytes, configuration, limits: tight)
    #expect(!result.report.isPassedThrough && result.report.output.size == PixelSize(width: 160, height: 240))
  }

  @Test(
    "a truncated or damaged file is an error in passthrough too", arguments: ["jpg", "png", "webp"])
  func failures(kind: String) throws {
    let bytes = Fixture.bytes(kind == "jpg" ? "photo-420.jpg" : "photo.\(kind)")
    for count in [bytes.count / 2, bytes.count - 13] {
      let tracer = InMemoryTracer()
      let error = #expect(throws: PipelineError.self) {
        try process(Array(bytes.prefix(count)), ProcessingConfiguration(), tracing: TraceTarget(tracer: tracer))
      }
      #expect(error?.code == .truncatedImage)
      #expect(tracer.finishedSpans.contains { $0.operationName == "rewrite" && $0.status?.code == .error })
    }
    let cancellation = Cancellation()
    cancellation.cancel()
    let error = #expect(throws: PipelineError.self) {
      try process(bytes, ProcessingConfiguration(), cancellation: cancellation)
    }
    #expect(error?.code == .cancelled)
  }

  @Test("rewriting is one span, and its time is the encoding time")
  func spans() throws {
    let tracer = InMemoryTracer()
    let (bytes, report) = try process(
      Fixture.bytes("photo-420.jpg"), ProcessingConfiguration(), tracing: TraceTarget(tracer: tracer))
    let spans = tracer.finishedSpans
    #expect(spans.map(\.operationName) == ["rewrite"])
    #expect(spans.first?.attributes.get("imageworker.bytes") == bytes.count.toSpanAttribute())
    #expect(spans.first?.attributes.get("imageworker.passthrough") == "copied".toSpanAttribute())
    #expect(report.timings.encode > .zero && report.timings.decode == .zero)
  }
}
