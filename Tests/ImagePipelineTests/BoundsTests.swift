import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

/// Tests of the fields that change the bounds of a result, or extend it beyond its image.
@Suite("Bounds")
struct BoundsTests {
  private static func framing(
    _ width: Int, _ height: Int, _ configuration: ProcessingConfiguration
  ) throws -> Framing {
    try configuration.validate()
    return try Framing(shown: PixelSize(width: width, height: height), configuration: configuration)
  }

  private static func size(_ width: Int, _ height: Int, _ configuration: ProcessingConfiguration) throws -> String {
    let framing = try framing(width, height, configuration)
    return "\(framing.imageSize) in \(framing.canvasSize)"
  }

  @Test(
    "zoom multiplies the bounds, together with the divisor",
    arguments: [
      (2.0, nil as Double?, "640x480 in 640x480"), (0.5, nil, "160x120 in 160x120"), (3, 2, "480x360 in 480x360"),
      (8, nil, "1000x750 in 1000x750"), (1, nil, "320x240 in 320x240"),
    ])
  func zoom(zoom: Double, divisor: Double?, expected: String) throws {
    let configuration = ProcessingConfiguration(maxWidth: 320, maxHeight: 240, scaleFactor: divisor, zoom: zoom)
    #expect(try Self.size(1000, 750, configuration) == expected)
  }

  @Test("zoomed bounds are whole where their product is")
  func wholeProducts() throws {
    // 100 * 0.29 is 28.999999999999996.
    let configuration = ProcessingConfiguration(maxWidth: 100, zoom: 0.29)
    #expect(try Self.size(1000, 1000, configuration) == "29x29 in 29x29")
    // 121 / 1.1 is 109.99999999999999.
    let divided = ProcessingConfiguration(maxWidth: 121, scaleFactor: 1.1)
    #expect(try Self.size(1000, 1000, divided) == "110x110 in 110x110")
  }

  @Test("zoom applies to fill, stretch, padding and minima")
  func zoomOfOthers() throws {
    func size(_ configuration: ProcessingConfiguration) throws -> String {
      var zoomed = configuration
      zoomed.zoom = 2
      return try Self.size(1000, 500, zoomed)
    }
    #expect(
      try size(ProcessingConfiguration(maxWidth: 100, maxHeight: 100, resizeMode: .fill)) == "200x200 in 200x200")
    #expect(
      try size(ProcessingConfiguration(maxWidth: 100, maxHeight: 50, resizeMode: .stretch)) == "200x100 in 200x100")
    #expect(try size(ProcessingConfiguration(maxWidth: 100, maxHeight: 100, pad: true)) == "200x100 in 200x200")
    #expect(try size(ProcessingConfiguration(maxWidth: 100, minHeight: 60)) == "200x120 in 200x120")
    #expect(try size(ProcessingConfiguration(minHeight: 600)) == "2400x1200 in 2400x1200")
  }

  @Test(
    "minima are reached at the aspect ratio, and what exceeds a bound is cropped",
    arguments: [
      // (image, bounds, minima, result)
      ([400, 200], [100, 0], [0, 80], "100x80"),
      ([400, 200], [100, 100], [0, 80], "100x80"),
      ([200, 400], [100, 100], [80, 0], "80x100"),
      ([400, 200], [100, 100], [100, 50], "100x50"),
      ([400, 200], [0, 0], [500, 0], "500x250"),
      ([400, 200], [0, 0], [500, 300], "600x300"),
      ([400, 200], [0, 100], [300, 0], "300x100"),
      ([40, 20], [100, 100], [60, 0], "60x30"),
      ([400, 200], [0, 0], [100, 100], "400x200"),
    ])
  func minima(image: [Int], bounds: [Int], minima: [Int], expected: String) throws {
    func bound(_ value: Int) -> Int? { value == 0 ? nil : value }
    let configuration = ProcessingConfiguration(
      maxWidth: bound(bounds[0]), maxHeight: bound(bounds[1]), minWidth: bound(minima[0]), minHeight: bound(minima[1]))
    let framing = try Self.framing(image[0], image[1], configuration)
    #expect("\(framing.imageSize)" == expected && framing.canvasSize == framing.imageSize)
    let ratio = framing.window.width / framing.window.height
    #expect(abs(ratio / (Double(framing.imageSize.width) / Double(framing.imageSize.height)) - 1) < 0.02)
  }

  @Test("the part that a minimum leaves is chosen by gravity, and by the focus point before it")
  func minimumGravity() throws {
    func window(_ gravity: Gravity?, _ focus: Point? = nil) throws -> Window {
      try Self.framing(
        400, 200,
        ProcessingConfiguration(maxWidth: 100, gravity: gravity, focusPoint: focus, minHeight: 100)
      ).window
    }
    #expect(try window(nil) == Window(x: 100, y: 0, width: 200, height: 200))
    #expect(try window(.east) == Window(x: 200, y: 0, width: 200, height: 200))
    #expect(try window(.east, Point(x: 0, y: 0)) == Window(x: 0, y: 0, width: 200, height: 200))
  }

  private static let extensions: [([Int], [Int], Double, String)] = [
    ([400, 200], [0, 0], 1.0, "400x200 in 400x400"),
    ([200, 400], [0, 0], 1.0, "200x400 in 400x400"),
    ([400, 300], [0, 0], 16.0 / 9, "400x300 in 533x300"),
    ([400, 200], [100, 0], 1.0, "100x50 in 100x100"),
    ([200, 400], [100, 0], 1.0, "50x100 in 100x100"),
    ([400, 600], [800, 600], 2.0, "267x400 in 800x400"),
    ([400, 600], [0, 300], 2.0, "200x300 in 600x300"),
    ([50, 20], [800, 600], 2.0, "50x20 in 50x25"),
    ([400, 200], [100, 50], 2.0, "100x50 in 100x50"),
  ]

  @Test("a result is extended to an aspect ratio within its bounds", arguments: extensions)
  func extended(image: [Int], bounds: [Int], ratio: Double, expected: String) throws {
    func bound(_ value: Int) -> Int? { value == 0 ? nil : value }
    let configuration = ProcessingConfiguration(
      maxWidth: bound(bounds[0]), maxHeight: bound(bounds[1]), extendAspectRatio: ratio)
    #expect(try Self.size(image[0], image[1], configuration) == expected)
  }

  @Test("an extended result has the image at its gravity and the background elsewhere")
  func extendedPixels() throws {
    let configuration = ProcessingConfiguration(
      preferredFormat: .png, gravity: .west, background: Color(red: 1, green: 2, blue: 3), extendAspectRatio: 4)
    let (bytes, report) = try process(Fixture.bytes("photo.png"), configuration)
    let (original, extended) = (try Pixels.decode(Fixture.bytes("photo.png")), try Pixels.decode(bytes))
    let (width, height) = (original.layout[0].width, original.layout[0].height)
    #expect(report.output.size == PixelSize(width: 4 * height, height: height))
    let pixelByteCount = extended.planes[0].count / (4 * height * height)
    let row = extended.planes[0].prefix(4 * height * pixelByteCount)
    #expect(Array(row.prefix(3 * width)) == Array(original.planes[0].prefix(3 * width)))
    #expect(Array(row.suffix(3)) == [1, 2, 3])
  }

  @Test(
    "contradictions name their field",
    arguments: [
      (ProcessingConfiguration(zoom: 2), "zoom", "needs max_width"),
      (ProcessingConfiguration(maxWidth: 60000, zoom: 2), "zoom", "beyond 65500"),
      (ProcessingConfiguration(maxWidth: 10, zoom: 9), "zoom", "between 0.1 and 8.0"),
      (ProcessingConfiguration(maxWidth: 10, minWidth: 11), "min_width", "exceeds max_width 10"),
      (ProcessingConfiguration(maxHeight: 10, minHeight: 11), "min_height", "exceeds max_height 10"),
      (
        ProcessingConfiguration(maxWidth: 10, maxHeight: 10, resizeMode: .fill, minWidth: 5), "min_width",
        "resize_mode FILL"
      ),
      (
        ProcessingConfiguration(maxWidth: 10, maxHeight: 10, resizeMode: .stretch, extendAspectRatio: 1),
        "extend_aspect_ratio", "resize_mode STRETCH"
      ),
      (ProcessingConfiguration(maxWidth: 10, pad: true, extendAspectRatio: 1), "extend_aspect_ratio", "pad"),
      (ProcessingConfiguration(minWidth: 5, extendAspectRatio: 1), "extend_aspect_ratio", "min_width"),
      (ProcessingConfiguration(extendAspectRatio: 11), "extend_aspect_ratio", "between 0.1 and 10.0"),
      (ProcessingConfiguration(minWidth: 0), "min_width", "between 1 and 65500"),
      (ProcessingConfiguration(sharpenReduced: 3), "sharpen_reduced", "between 0.0 and 2.0"),
    ])
  func contradictions(configuration: ProcessingConfiguration, field: String, message: String) {
    let error = #expect(throws: PipelineError.self) { try configuration.validate() }
    #expect(error?.code == .invalidField && error?.field == field, "\(String(describing: error))")
    #expect(error?.message.contains(message) == true, "\(String(describing: error?.message))")
  }

  @Test("results with too large a side are refused, naming the field that asks for them")
  func tooLarge() {
    for (configuration, field) in [
      (ProcessingConfiguration(minWidth: 1000), "min_width"),
      (ProcessingConfiguration(extendAspectRatio: 10), "extend_aspect_ratio"),
    ] {
      let size = field == "min_width" ? PixelSize(width: 1, height: 1000) : PixelSize(width: 10, height: 20000)
      let error = #expect(throws: PipelineError.self) { try Framing(shown: size, configuration: configuration) }
      #expect(error?.code == .invalidField && error?.field == field, "\(String(describing: error))")
    }
  }
}
