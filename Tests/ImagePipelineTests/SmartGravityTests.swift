import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Smart gravity")
struct SmartGravityTests {
  private static let (width, height, side) = (600, 400, 60)

  /// A soft gray image with a square of colored noise at a place.
  private static func image(x: Int, y: Int, isPlain: Bool = false) throws -> [UInt8] {
    var samples = [UInt8](repeating: 0, count: width * height * 3)
    let noise = noiseSamples(side * side * 3)
    for row in 0..<height {
      for column in 0..<width {
        let isSquare = !isPlain && (x..<x + side).contains(column) && (y..<y + side).contains(row)
        for channel in 0..<3 {
          samples[(row * width + column) * 3 + channel] =
            isSquare && channel < 2 ? noise[((row - y) * side + column - x) * 3 + channel] : 120
        }
      }
    }
    return try encodedImage(samples, width: width, height: height, pixelFormat: .rgb8)
  }

  private static func configuration(
    _ width: Int = 100, _ height: Int = 100, _ change: (inout ProcessingConfiguration) -> Void = { _ in }
  ) -> ProcessingConfiguration {
    var configuration = ProcessingConfiguration(
      maxWidth: width, maxHeight: height, compressionQuality: 0.8, preferredFormat: .png, resizeMode: .fill,
      gravity: .smart)
    change(&configuration)
    return configuration
  }

  @Test(
    "keeps what attracts attention, wherever it is",
    arguments: [(10, 170), (120, 20), (270, 330), (480, 100), (530, 0)])
  func subject(x: Int, y: Int) throws {
    let png = try Self.image(x: x, y: y)
    let jpeg = try process(png, ProcessingConfiguration(compressionQuality: 0.9, preferredFormat: .jpeg)).bytes
    for file in [png, jpeg] {
      for (width, height) in [(100, 100), (160, 40), (40, 160)] {
        let crop = try #require(try process(file, Self.configuration(width, height)).report.crop)
        #expect(crop.x <= x + 2 && crop.x + crop.width >= x + Self.side - 2, "\(crop)")
        #expect(crop.y <= y + 2 && crop.y + crop.height >= y + Self.side - 2, "\(crop)")
      }
    }
  }

  @Test("keeps the center of a plain image", arguments: [(800, 400), (400, 900), (800, 200)])
  func plainColors(width: Int, height: Int) throws {
    let samples = [[UInt8]](repeating: [120, 150, 180], count: width * height).flatMap(\.self)
    let file = try encodedImage(samples, width: width, height: height, pixelFormat: .rgb8)
    let crop = try #require(try process(file, Self.configuration(90, 90)).report.crop)
    #expect(abs(2 * crop.x + crop.width - width) <= 2 && abs(2 * crop.y + crop.height - height) <= 2, "\(crop)")
  }

  @Test("chooses the same part of an image that is rotated or mirrored", arguments: [0, 90, 180, 270], [false, true])
  func orientation(rotation: Int, flips: Bool) throws {
    let file = try Self.image(x: 480, y: 100)
    let rotated = try process(
      file, ProcessingConfiguration(preferredFormat: .png, rotation: rotation, flipHorizontal: flips)
    ).bytes
    let asked = Self.configuration { ($0.rotation, $0.flipHorizontal) = (rotation, flips) }
    let (one, other) = (try process(file, asked).report.crop, try process(rotated, Self.configuration()).report.crop)
    let (ours, theirs) = (try #require(one), try #require(other))
    #expect(abs(ours.x - theirs.x) <= 4 && abs(ours.y - theirs.y) <= 4, "\(ours) \(theirs)")
  }

  @Test("takes the center of an image without contrasts, and of what trim leaves")
  func plain() throws {
    let plain = try process(Self.image(x: 0, y: 0, isPlain: true), Self.configuration()).report
    #expect(plain.crop == PixelRect(x: 100, y: 0, width: 400, height: 400))
    let trimmed = try process(
      Self.image(x: 100, y: 50), Self.configuration(20, 10) { $0.trim = Trim(threshold: 10) }
    ).report
    let crop = try #require(trimmed.crop)
    #expect(crop.x >= 99 && crop.x + crop.width <= 161 && crop.y >= 49 && crop.y + crop.height <= 111, "\(crop)")
    #expect(abs(crop.width - 2 * crop.height) <= 2)
  }

  @Test("gives the pixels of that crop, whatever the windows are")
  func pixels() throws {
    let file = try Self.image(x: 480, y: 100)
    let (bytes, report) = try process(file, Self.configuration())
    let crop = try #require(report.crop)
    let cropping = Self.configuration {
      $0.gravity = nil
      $0.crop = Crop(x: Double(crop.x), y: Double(crop.y), width: Double(crop.width), height: Double(crop.height))
    }
    let (one, other) = (try Grid(decoding: bytes), try Grid(decoding: process(file, cropping).bytes))
    #expect(one.width == other.width && one.height == other.height)
    for count in [1, 1000] { #expect(try process(file, Self.configuration(), windowByteCount: count).bytes == bytes) }
  }

  @Test("counts for FILL alone, and not with a focus point")
  func others() throws {
    let file = try Self.image(x: 480, y: 100)
    func report(_ change: (inout ProcessingConfiguration) -> Void) throws -> ProcessingReport {
      try process(file, Self.configuration(100, 100, change)).report
    }
    #expect(try report { $0.resizeMode = .fit }.crop == nil)
    #expect(try report { $0.focusPoint = Point(x: 0, y: 0) }.crop == nil)
    var centered = Self.configuration { ($0.resizeMode, $0.pad) = (.fit, true) }
    let smart = try process(file, centered).bytes
    centered.gravity = .center
    #expect(try process(file, centered).bytes == smart)
  }

  @Test("works on every format, within the planned memory", arguments: Fixture.names)
  func fixtures(name: String) throws {
    let bytes = Fixture.bytes(name)
    let configuration = Self.configuration(40, 15)
    var reader = ImageReader(limits: ImageLimits())
    reader.configurations = [configuration]
    #expect(try reader.push(bytes.span.bytes, isLast: true).isComplete)
    let estimate = try reader.plan(configuration).workingSetByteCount
    let (whole, report) = try process(bytes, configuration)
    #expect(report.peakMemoryByteCount <= estimate && report.crop != nil)
    for count in [7, 4096] { #expect(try process(bytes, configuration, windowByteCount: count).bytes == whole) }
  }

  @Test("frames one animation alike, by its first frame")
  func animation() throws {
    var generator = SeededGenerator(seed: 3)
    let file = GIFAnimation.random(&generator, frameCount: 4).bytes
    let report = try process(file, Self.configuration(10, 4) { $0.maxFrames = 0 }).report
    #expect(report.output.frameCount > 1 && report.crop != nil)
    let error = #expect(throws: PipelineError.self) {
      try process(file, Self.configuration { $0.frameIndex = FrameIndex(1) })
    }
    #expect(error?.code == .unservedField && error?.field == "frame_index")
  }
}
