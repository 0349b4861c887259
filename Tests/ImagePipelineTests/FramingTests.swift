import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Framing")
struct FramingTests {
  @Test("fill covers both bounds with a part of the same aspect ratio inside the image", arguments: Gravity.allCases)
  func fill(gravity: Gravity) throws {
    for (width, height) in [(400, 300), (300, 400), (1000, 10), (50, 50), (123, 457)] {
      for (boundWidth, boundHeight) in [(100, 100), (64, 20), (20, 64), (500, 500)] {
        let shown = PixelSize(width: width, height: height)
        let framing = try Framing(
          shown: shown,
          configuration: ProcessingConfiguration(
            maxWidth: boundWidth, maxHeight: boundHeight, resizeMode: .fill, gravity: gravity))
        let (window, size) = (framing.window, framing.imageSize)
        #expect(size == PixelSize(width: min(boundWidth, width), height: min(boundHeight, height)))
        #expect(window.x >= 0 && window.x + window.width <= Double(width) + 1e-9)
        #expect(window.y >= 0 && window.y + window.height <= Double(height) + 1e-9)
        #expect(abs(window.width / window.height / (Double(size.width) / Double(size.height)) - 1) < 1e-9)
        #expect(window.width == Double(width) || window.height == Double(height))
        #expect(abs(window.x - (Double(width) - window.width) * gravity.x) < 1e-9)
        #expect(abs(window.y - (Double(height) - window.height) * gravity.y) < 1e-9)
      }
    }
  }

  @Test("what fill only cuts off leaves whole pixels", arguments: [nil, Point(x: 0.502, y: 0.3)])
  func cuts(focus: Point?) throws {
    for (width, height) in [(101, 60), (103, 60), (100, 61), (100, 99)] {
      let window = try Framing(
        shown: PixelSize(width: width, height: height),
        configuration: ProcessingConfiguration(
          maxWidth: 100, maxHeight: 60, resizeMode: .fill, gravity: .center, focusPoint: focus)
      ).window
      #expect(window.width == 100 && window.height == 60)
      #expect(window.x == window.x.rounded() && window.y == window.y.rounded())
    }
  }

  @Test("the focus point is in the center of fill's part, as far as the image permits")
  func focus() throws {
    func window(_ x: Double) throws -> Window {
      try Framing(
        shown: PixelSize(width: 400, height: 100),
        configuration: ProcessingConfiguration(
          maxWidth: 50, maxHeight: 50, resizeMode: .fill, gravity: .west, focusPoint: Point(x: x, y: 0.9))
      ).window
    }
    #expect(try window(0.5) == Window(x: 150, y: 0, width: 100, height: 100))
    #expect(try window(0) == Window(x: 0, y: 0, width: 100, height: 100))
    #expect(try window(1) == Window(x: 300, y: 0, width: 100, height: 100))
  }

  @Test("a crop is applied first, in pixels or fractions")
  func crop() throws {
    let shown = PixelSize(width: 400, height: 200)
    for crop in [
      Crop(x: 100, y: 50, width: 200, height: 100), Crop(unit: .fractions, x: 0.25, y: 0.25, width: 0.5, height: 0.5),
    ] {
      let framing = try Framing(shown: shown, configuration: ProcessingConfiguration(maxWidth: 100, crop: crop))
      #expect(framing.window == Window(x: 100, y: 50, width: 200, height: 100))
      #expect(framing.imageSize == PixelSize(width: 100, height: 50))
    }
    let whole = Crop(unit: .fractions, x: 0.7, y: 0, width: 0.3, height: 1)
    #expect(
      try Framing(shown: shown, configuration: ProcessingConfiguration(crop: whole)).imageSize
        == PixelSize(width: 120, height: 200))
  }

  @Test(
    "a crop outside the image is refused, naming its field",
    arguments: [
      (Crop(x: 400, width: 1, height: 1), "crop.x"), (Crop(x: 399, width: 2, height: 1), "crop.width"),
      (Crop(y: 200, width: 1, height: 1), "crop.y"), (Crop(width: 1, height: 201), "crop.height"),
      (Crop(unit: .fractions, x: 0.5, width: 0.6, height: 1), "crop.width"),
    ])
  func badCrop(crop: Crop, field: String) {
    let error = #expect(throws: PipelineError.self) {
      try Framing(shown: PixelSize(width: 400, height: 200), configuration: ProcessingConfiguration(crop: crop))
    }
    #expect(error?.code == .invalidField && error?.field == field)
  }

  @Test(
    "a crop that fits no image is refused before the image arrives",
    arguments: [
      (Crop(x: -1, width: 1, height: 1), "crop.x"), (Crop(x: .nan, width: 1, height: 1), "crop.x"),
      (Crop(width: 0, height: 1), "crop.width"), (Crop(width: 1, height: .infinity), "crop.height"),
      (Crop(unit: .fractions, width: 1.5, height: 1), "crop.width"),
    ])
  func impossibleCrop(crop: Crop, field: String) {
    let error = #expect(throws: PipelineError.self) {
      try ProcessingConfiguration(crop: crop).validate()
    }
    #expect(error?.code == .invalidField && error?.field == field)
  }

  @Test("padding extends the result to its bounds, with the image placed by gravity")
  func padding() throws {
    func framing(_ gravity: Gravity) throws -> Framing {
      try Framing(
        shown: PixelSize(width: 400, height: 100),
        configuration: ProcessingConfiguration(maxWidth: 100, maxHeight: 101, gravity: gravity, pad: true))
    }
    let centered = try framing(.center)
    #expect(centered.imageSize == PixelSize(width: 100, height: 25))
    #expect(centered.canvasSize == PixelSize(width: 100, height: 101))
    #expect(centered.left == 0 && centered.top == 38)
    #expect(try framing(.southEast).top == 76)
  }

  @Test("a side without a bound reaches the maximum without distortion")
  func longSide() throws {
    func size(_ shown: PixelSize, _ configuration: ProcessingConfiguration) throws -> PixelSize {
      try Framing(shown: shown, configuration: configuration).imageSize
    }
    let grown = ProcessingConfiguration(maxWidth: 100, allowUpscale: true)
    #expect(try size(PixelSize(width: 1, height: 3000), grown) == PixelSize(width: 22, height: 65_500))
    let reduced = ProcessingConfiguration(maxHeight: 5)
    #expect(try size(PixelSize(width: 200_000, height: 10), reduced) == PixelSize(width: 65_500, height: 3))
  }

  @Test("padding on one axis keeps the other side of the image")
  func paddingOfOneAxis() throws {
    func canvas(_ maxWidth: Int?, _ maxHeight: Int?) throws -> PixelSize {
      try Framing(
        shown: PixelSize(width: 400, height: 100),
        configuration: ProcessingConfiguration(maxWidth: maxWidth, maxHeight: maxHeight, pad: true)
      ).canvasSize
    }
    #expect(try canvas(500, nil) == PixelSize(width: 500, height: 100))
    #expect(try canvas(nil, 101) == PixelSize(width: 400, height: 101))
    #expect(try canvas(nil, nil) == PixelSize(width: 400, height: 100))
  }

  @Test("quarter rotations and flips compose with each of the eight orientations", arguments: 1...8)
  func turning(raw: Int) throws {
    let orientation = try #require(Orientation(rawValue: raw))
    func rotated(_ quarters: Int) -> Orientation {
      orientation.rotated(quarters: quarters, flipsColumns: false, flipsRows: false)
    }
    #expect(rotated(0) == orientation && rotated(4) == orientation)
    #expect(rotated(1) != orientation && rotated(1).swapsAxes != orientation.swapsAxes)
    #expect(rotated(1).rotated(quarters: 3, flipsColumns: false, flipsRows: false) == orientation)
    let flipped = orientation.rotated(quarters: 0, flipsColumns: true, flipsRows: false)
    #expect(flipped.rotated(quarters: 0, flipsColumns: true, flipsRows: false) == orientation)
    #expect(flipped.rotated(quarters: 0, flipsColumns: false, flipsRows: true) == rotated(2))
    #expect(Orientation.up.rotated(quarters: 1, flipsColumns: false, flipsRows: false) == .right)
    #expect(Orientation.up.rotated(quarters: 0, flipsColumns: true, flipsRows: false) == .mirrored)
  }

  /// Compares crop, rotation and padding of whole pixels with the same operations on the decoded pixels.
  @Test("crops, rotates and pads in shown space for every orientation", arguments: 1...8)
  func pixels(orientation: Int) throws {
    let name = "orientation-\(orientation).png"
    let shown = try Grid(decoding: process(Fixture.bytes(name), ProcessingConfiguration(preferredFormat: .png)).bytes)
    for (rotation, flips) in [(0, false), (90, false), (180, true), (270, true)] {
      var expected = shown.rotated(quarters: rotation / 90)
      if flips { expected = expected.flipped() }
      expected = expected.cropped(x: 5, y: 3, width: 17, height: 20)
      let configuration = ProcessingConfiguration(
        preferredFormat: .png, crop: Crop(x: 5, y: 3, width: 17, height: 20), rotation: rotation,
        flipHorizontal: flips)
      #expect(try Grid(decoding: process(Fixture.bytes(name), configuration).bytes) == expected, "\(rotation)")
      var padded = configuration
      (padded.maxWidth, padded.maxHeight, padded.pad) = (25, 24, true)
      (padded.gravity, padded.background) = (.northWest, Color(red: 1, green: 2, blue: 3))
      let result = try Grid(decoding: process(Fixture.bytes(name), padded).bytes)
      #expect(result.cropped(x: 0, y: 0, width: 17, height: 20) == expected)
      #expect(result.width == 25 && result.height == 24)
      #expect(
        result.pixel(24, 23) == [1, 2, 3] && result.pixel(17, 0) == [1, 2, 3] && result.pixel(0, 20) == [1, 2, 3])
    }
  }

  @Test("a reduced decode of a crop agrees with the crop of a full one", arguments: ["photo-420.jpg", "photo-444.jpg"])
  func reduced(name: String) throws {

    let crop = Crop(x: 40, y: 16, width: 160, height: 120)
    let full = try Grid(
      decoding:
        process(Fixture.bytes(name), ProcessingConfiguration(preferredFormat: .png, crop: crop)).bytes)
    let small = try Grid(
      decoding:
        process(
          Fixture.bytes(name), ProcessingConfiguration(maxWidth: 20, preferredFormat: .png, crop: crop)
        ).bytes)
    #expect(small.width == 20 && small.height == 15)
    #expect(small.meanDifference(fromBoxMeansOf: full, side: 8) < 6)
  }

  @Test("rows after a crop are not decoded")
  func early() throws {
    let bytes = Fixture.bytes("photo-420.jpg")
    let configuration = ProcessingConfiguration(crop: Crop(width: 40, height: 16))
    let cut = bytes.prefix(bytes.count * 2 / 3)
    #expect(try process(Array(cut), configuration).report.output.size == PixelSize(width: 40, height: 16))
    let error = #expect(throws: PipelineError.self) { try process(Array(cut), ProcessingConfiguration()) }
    #expect(error?.code == .truncatedImage)
  }
}
