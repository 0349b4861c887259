import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Preview plans")
struct PreviewPlanTests {
  private func reader(_ bytes: [UInt8]) throws -> ImageReader {
    var reader = ImageReader(limits: ImageLimits())
    _ = try reader.push(bytes.span.bytes, isLast: true)
    return reader
  }

  private func plans(
    _ bytes: [UInt8], _ configuration: ProcessingConfiguration
  ) throws -> (full: Plan, preview: Plan) {
    var first = try reader(bytes)
    var second = try reader(bytes)
    return (try first.plan(configuration), try second.previewPlan(configuration).renditions[0].get())
  }

  struct Case: Sendable {
    var configuration: ProcessingConfiguration
    var canvas: PixelSize
    var image: PixelSize?
    var left = 0
    var top = 0
  }

  /// Cases for an image of 240x160.
  private static let cases = [
    Case(configuration: ProcessingConfiguration(), canvas: PixelSize(width: 240, height: 160)),
    Case(
      configuration: ProcessingConfiguration(maxWidth: 1200, allowUpscale: true),
      canvas: PixelSize(width: 300, height: 200)),
    Case(
      configuration: ProcessingConfiguration(maxWidth: 2400, scaleFactor: 2, allowUpscale: true, rotation: 90),
      canvas: PixelSize(width: 200, height: 300)),
    Case(
      configuration: ProcessingConfiguration(maxWidth: 600, maxHeight: 600, resizeMode: .fill, allowUpscale: true),
      canvas: PixelSize(width: 300, height: 300)),
    Case(
      configuration: ProcessingConfiguration(maxWidth: 1000, maxHeight: 7, resizeMode: .stretch, allowUpscale: true),
      canvas: PixelSize(width: 300, height: 2)),
    Case(
      configuration: ProcessingConfiguration(maxWidth: 9000, maxHeight: 1, resizeMode: .stretch, allowUpscale: true),
      canvas: PixelSize(width: 300, height: 1)),
    // An image that must not be enlarged is small on its canvas, and so it is in the preview.
    Case(
      configuration: ProcessingConfiguration(maxWidth: 1000, maxHeight: 1000, pad: true),
      canvas: PixelSize(width: 300, height: 300), image: PixelSize(width: 72, height: 48), left: 114, top: 126),
    Case(
      configuration: ProcessingConfiguration(maxWidth: 65_000, maxHeight: 65_000, gravity: .southEast, pad: true),
      canvas: PixelSize(width: 300, height: 300), image: PixelSize(width: 1, height: 1), left: 299, top: 299),
  ]

  @Test("show the same part of the image at the same position, at most 300 pixels long", arguments: cases)
  func geometry(_ expected: Case) throws {
    let (full, preview) = try plans(Fixture.bytes("photo-420.jpg"), expected.configuration)
    #expect(preview.outputSize == expected.canvas && preview.framing.window == full.framing.window)
    #expect(preview.framing.imageSize == expected.image ?? expected.canvas)
    #expect(preview.framing.left == expected.left && preview.framing.top == expected.top)
  }

  @Test("stay on their canvas where rounding would place the image beyond it")
  func edge() throws {
    let image = try encodedImage([90, 90, 90], width: 1, height: 1, pixelFormat: .rgb8)
    let (_, preview) = try plans(
      image, ProcessingConfiguration(maxWidth: 65_000, maxHeight: 65_000, gravity: .southEast, pad: true))
    #expect(preview.outputSize == PixelSize(width: 300, height: 300))
    #expect(preview.framing.left == 299 && preview.framing.top == 299)
    #expect(preview.framing.imageSize == PixelSize(width: 1, height: 1))
  }

  @Test("have the background of the result")
  func background() throws {
    let color = Color(red: 200, green: 30, blue: 10)
    let configuration = ProcessingConfiguration(
      maxWidth: 600, maxHeight: 600, preferredFormat: .jpeg, pad: true, background: color)
    #expect(try plans(Fixture.bytes("photo-420.jpg"), configuration).preview.background == color)
  }

  @Test("and results warn of a scale factor without bounds")
  func scaleWarning() throws {
    func warnings(_ configuration: ProcessingConfiguration) throws -> [[String]] {
      let (full, preview) = try plans(Fixture.bytes("photo-420.jpg"), configuration)
      return [full.knownWarnings.map(\.message), preview.knownWarnings.map(\.message)]
    }
    let warning = ["scale_factor needs max_width or max_height; set one of them"]
    #expect(try warnings(ProcessingConfiguration(scaleFactor: 2))[0] == warning)
    #expect(try warnings(ProcessingConfiguration(scaleFactor: 1)) == [[], []])
    #expect(try warnings(ProcessingConfiguration(maxWidth: 50, scaleFactor: 2)) == [[], []])
    #expect(try warnings(ProcessingConfiguration(maxHeight: 50, scaleFactor: 2)) == [[], []])
  }

  @Test("scale the lengths of filters, and skip those that become too small")
  func filters() throws {
    func chain(_ filters: [Filter], longestSide: Int) throws -> (preview: FilterChain, full: FilterChain) {
      let configuration = ProcessingConfiguration(maxWidth: longestSide, allowUpscale: true, filters: filters)
      let (full, preview) = try plans(Fixture.bytes("photo-420.jpg"), configuration)
      return (preview.filters, full.filters)
    }
    func filter(_ name: String, _ parameters: [String: Double] = [:]) -> Filter {
      Filter(name: name, intensity: 0.5, parameters: parameters)
    }
    let asked = [
      filter("blur", ["radius": 40]), filter("sharpen"), filter("pixelate", ["size": 10]), filter("pixelate"),
      filter("vignette", ["radius": 0.2]), filter("sepia"),
    ]
    let scaled = [
      filter("blur", ["radius": 10]), filter("sharpen", ["radius": 0.25]), filter("pixelate", ["size": 3]),
      filter("pixelate", ["size": 2]), filter("vignette", ["radius": 0.2]), filter("sepia"),
    ]
    #expect(try chain(asked, longestSide: 1200).preview == chain(scaled, longestSide: 300).full)
    #expect(try chain(asked, longestSide: 300).preview == chain(asked, longestSide: 300).full)
    #expect(
      try chain([filter("sharpen", ["radius": 0.2]), filter("pixelate", ["size": 2])], longestSide: 1200)
        .preview.isEmpty)
  }

  @Test("are JPEGs, or PNGs if the result has transparency")
  func formats() throws {
    let cases: [(String, OutputFormat, String, Bool)] = [
      ("photo-420.jpg", .original, "jpeg", false), ("photo.png", .webp, "jpeg", false),
      ("alpha.png", .original, "png", true), ("alpha.webp", .webp, "png", true), ("alpha.png", .jpeg, "jpeg", false),
    ]
    for (name, format, expected, hasAlpha) in cases {
      let (_, preview) = try plans(
        Fixture.bytes(name),
        ProcessingConfiguration(preferredFormat: format, maxBytes: 10, metadata: .keepCopyright))
      #expect(preview.outputInfo.format == expected && preview.outputInfo.hasAlpha == hasAlpha, "\(name) \(format)")
    }
  }

  @Test("decode at the smallest scale that covers the preview, and never pass the image through")
  func scale() throws {
    let bytes = Fixture.bytes("photo-420.jpg")
    let small = ProcessingConfiguration(maxWidth: 30, compressionQuality: 1)
    #expect(try plans(bytes, small).preview.decodeScale == 1 && plans(bytes, small).full.decodeScale > 1)
    var lit = small
    lit.resizeInLinearLight = true
    #expect(try plans(bytes, lit).preview.decodeScale == 1 && plans(bytes, lit).full.decodeScale == 8)
    #expect(try plans(bytes, ProcessingConfiguration(maxWidth: 31)).preview.decodeScale == 2)
    let (full, preview) = try plans(bytes, ProcessingConfiguration())
    #expect(full.passthrough != .decoded && preview.passthrough == .decoded)
  }

  @Test("are as large as requested, but not larger than the result", arguments: [(64, 64), (120, 120), (500, 240)])
  func size(maxSide: Int, side: Int) throws {
    var reader = try reader(Fixture.bytes("photo-420.jpg"))
    let plan = try reader.previewPlan(ProcessingConfiguration(), maxSide: maxSide).renditions[0].get()
    #expect(plan.outputInfo.size.width == side)
  }

  @Test("stay within the planned memory, and match the result", arguments: Fixture.names)
  func previews(name: String) throws {
    let bytes = Fixture.bytes(name)
    let configuration = ProcessingConfiguration(
      maxWidth: 330, maxHeight: 310, preferredFormat: .jpeg, allowUpscale: true, pad: true, rotation: 90)
    var reader = ImageReader(limits: ImageLimits())
    let consumed = try reader.push(bytes.span.bytes, isLast: true).consumedByteCount
    let plan = try reader.previewPlan(configuration)
    let path = try reader.takeRoute(plan, cancellation: Cancellation())
    var preview: [UInt8] = []
    let isDone = try path.push(bytes.span.bytes.extracting(droppingFirst: consumed), isLast: true) { span in
      span.withUnsafeBytes { preview.append(contentsOf: $0) }
    }
    #expect(isDone && path.report(queued: .zero, total: .zero).peakMemoryByteCount <= plan.workingSetByteCount)
    let (small, large) = (try Pixels.decode(preview), try Pixels.decode(process(bytes, configuration).bytes))
    #expect(small.layout[0].width == 300 && small.layout[0].height == 282)
    // At every ninth pixel of every ninth row, compare the mean of the two.
    var difference = [0.0, 0.0, 0.0]
    var count = 0.0
    for y in stride(from: 4, to: 282, by: 9) {
      for x in stride(from: 4, to: 300, by: 9) {
        let (one, other) = (small.color(x: x, y: y), large.color(x: x * 330 / 300, y: y * 310 / 282))
        for channel in 0..<3 { difference[channel] += one[channel] - other[channel] }
        count += 1
      }
    }
    for sum in difference { #expect(abs(sum / count) < 10) }
  }

  @Test("fail like the result's plan, and report insufficient memory")
  func errors() throws {
    let outside = ProcessingConfiguration(crop: Crop(unit: .pixels, x: 5000, y: 0, width: 10, height: 10))
    let refused = #expect(throws: PipelineError.self) {
      var reader = try reader(Fixture.bytes("photo-420.jpg"))
      _ = try reader.previewPlan(outside)
    }
    #expect(refused?.field == "crop.x")
    var limits = ImageLimits()
    limits.memory = 60_000
    let large = #expect(throws: PipelineError.self) {
      var reader = ImageReader(limits: limits)
      _ = try reader.push(Fixture.bytes("photo-420.jpg").span.bytes, isLast: true)
      _ = try reader.previewPlan(ProcessingConfiguration())
    }
    #expect(large?.limit?.name == "image_memory_limit")
  }
}
