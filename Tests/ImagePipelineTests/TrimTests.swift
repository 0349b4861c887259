import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Trim")
struct TrimTests {
  /// An image with a border, whose content begins and ends at random places.
  private struct Bordered {
    var width: Int
    var height: Int
    var samples: [UInt8]
    let format: PixelFormat

    init(_ format: PixelFormat, using generator: inout SeededGenerator) {
      self.format = format
      (width, height) = (Int.random(in: 1...60, using: &generator), Int.random(in: 1...60, using: &generator))
      let border = (0..<format.channelCount).map { _ in UInt8.random(in: 0...255, using: &generator) }
      samples = (0..<width * height).flatMap { _ in border }
      let (left, right) = Self.pair(width, &generator)
      let (top, bottom) = Self.pair(height, &generator)
      for y in 0..<height {
        for x in 0..<width {
          let isContent = (left...right).contains(x) && (top...bottom).contains(y)
          for channel in border.indices where isContent || Int.random(in: 0..<30, using: &generator) == 0 {
            let noise = UInt8.random(in: 0...255, using: &generator)
            samples[(y * width + x) * border.count + channel] = noise
          }
        }
      }
    }

    private static func pair(_ count: Int, _ generator: inout SeededGenerator) -> (Int, Int) {
      let places = (Int.random(in: 0..<count, using: &generator), Int.random(in: 0..<count, using: &generator))
      return (min(places.0, places.1), max(places.0, places.1))
    }

    func sample(_ x: Int, _ y: Int, _ channel: Int) -> Int {
      let (x, y) = (min(max(x, 0), width - 1), min(max(y, 0), height - 1))
      let index = (y * width + x) * format.channelCount
      guard format == .rgba8, channel < 3 else { return Int(samples[index + channel]) }
      return (Int(samples[index + channel]) * Int(samples[index + 3]) + 127) / 255
    }

    /// The part that is not border, by the definition: medians of 3x3 samples that differ from the first pixel.
    func content(threshold: Int) -> PixelRect? {
      let border = (0..<format.channelCount).map { sample(0, 0, $0) }
      var (columns, rows): ([Int], [Int]) = ([], [])
      for y in 0..<height {
        for x in 0..<width {
          let isContent = border.indices.contains { channel in
            let nine = (-1...1).flatMap { dy in (-1...1).map { sample(x + $0, y + dy, channel) } }.sorted()
            return abs(nine[4] - border[channel]) > threshold
          }
          if isContent {
            columns.append(x)
            rows.append(y)
          }
        }
      }
      guard let left = columns.min(), let right = columns.max(), let top = rows.min(), let bottom = rows.max() else {
        return nil
      }
      return PixelRect(x: left, y: top, width: right - left + 1, height: bottom - top + 1)
    }

    var file: [UInt8] { get throws { try encodedImage(samples, width: width, height: height, pixelFormat: format) } }
  }

  private static func configuration(_ trim: Trim = Trim(threshold: 10)) -> ProcessingConfiguration {
    ProcessingConfiguration(preferredFormat: .png, trim: trim)
  }

  @Test(
    "finds what differs from the border by the median of 3x3 pixels", arguments: [PixelFormat.gray8, .rgb8, .rgba8])
  func definition(format: PixelFormat) throws {
    var generator = SeededGenerator(seed: 11)
    for round in 0..<60 {
      let image = Bordered(format, using: &generator)
      let threshold = [0, 10, 60, 255][round % 4]
      let report = try process(image.file, Self.configuration(Trim(threshold: threshold))).report
      let expected = image.content(threshold: threshold)
      #expect(report.crop == expected)
      #expect(report.warnings.contains { $0.code == .trimIgnored } == (expected == nil))
      let size = report.output.size
      #expect(size.width == expected?.width ?? image.width && size.height == expected?.height ?? image.height)
    }
  }

  /// A gray border of 20, 30, 40 and 50 pixels at the left, right, top and bottom of noise.
  private static let framed: [UInt8] = {
    var samples = [UInt8](repeating: 90, count: 250 * 290 * 3)
    let noise = noiseSamples(samples.count)
    for y in 40..<240 { for x in 20 * 3..<220 * 3 { samples[y * 250 * 3 + x] = noise[y * 250 * 3 + x] } }
    do { return try encodedImage(samples, width: 250, height: 290, pixelFormat: .rgb8) } catch { return [] }
  }()

  @Test("leaves as much on both sides if that is requested")
  func equalSides() throws {
    func crop(_ trim: Trim, _ change: (inout ProcessingConfiguration) -> Void = { _ in }) throws -> PixelRect? {
      var configuration = Self.configuration(trim)
      change(&configuration)
      return try process(Self.framed, configuration).report.crop
    }
    #expect(try crop(Trim()) == PixelRect(x: 20, y: 40, width: 200, height: 200))
    #expect(try crop(Trim(isEqualHorizontally: true)) == PixelRect(x: 20, y: 40, width: 210, height: 200))
    #expect(try crop(Trim(isEqualVertically: true)) == PixelRect(x: 20, y: 40, width: 200, height: 210))
    #expect(
      try crop(Trim(isEqualHorizontally: true)) { $0.rotation = 90 } == PixelRect(x: 40, y: 20, width: 210, height: 200)
    )
    #expect(
      try crop(Trim(color: Color(red: 90, green: 90, blue: 90))) == PixelRect(x: 20, y: 40, width: 200, height: 200))
    #expect(try crop(Trim(color: Color(red: 0, green: 0, blue: 0))) == PixelRect(x: 0, y: 0, width: 250, height: 290))
    // A crop comes first.
    #expect(
      try crop(Trim()) { $0.crop = Crop(x: 10, y: 0, width: 100, height: 100) }
        == PixelRect(x: 20, y: 40, width: 90, height: 60))
  }

  @Test("gives the pixels that a crop gives, of the same scale of decoding")
  func crop() throws {
    let jpeg = try process(Self.framed, ProcessingConfiguration(compressionQuality: 0.9, preferredFormat: .jpeg)).bytes
    for (file, isLossy) in [(Self.framed, false), (jpeg, true)] {
      for width in [20, 60, 400] {
        var trimming = Self.configuration(Trim(threshold: 40))
        trimming.maxWidth = width
        let (bytes, report) = try process(file, trimming)
        let found = try #require(report.crop)
        if isLossy {
          #expect(abs(found.x - 20) <= 1 && abs(found.y - 40) <= 1)
        } else {
          #expect(found == PixelRect(x: 20, y: 40, width: 200, height: 200))
        }
        var cropping = trimming
        cropping.trim = nil
        cropping.crop = Crop(
          x: Double(found.x), y: Double(found.y), width: Double(found.width), height: Double(found.height))
        #expect(try process(file, cropping).bytes == bytes)
        for count in [1, 1000] { #expect(try process(file, trimming, windowByteCount: count).bytes == bytes) }
      }
    }
  }

  @Test("keeps shrink-on-load for the result")
  func shrinkOnLoad() throws {
    let jpeg = try process(Self.framed, ProcessingConfiguration(compressionQuality: 0.9, preferredFormat: .jpeg)).bytes
    var reader = ImageReader(limits: ImageLimits())
    let configuration = ProcessingConfiguration(maxWidth: 20, compressionQuality: 0.8, trim: Trim(threshold: 40))
    reader.configurations = [configuration]
    #expect(try reader.push(jpeg.span.bytes, isLast: true).isComplete)
    #expect(try reader.plan(configuration).decodeScale < 8)
  }

  @Test("decodes every format to its end twice, and charges what it stores", arguments: Fixture.names)
  func fixtures(name: String) throws {
    let bytes = Fixture.bytes(name)
    let configuration = ProcessingConfiguration(
      maxWidth: 100, preferredFormat: .png, alwaysEncode: true, trim: Trim(threshold: 30))
    var reader = ImageReader(limits: ImageLimits())
    reader.configurations = [configuration]
    #expect(try reader.push(bytes.span.bytes, isLast: true).isComplete)
    let estimate = try reader.plan(configuration).workingSetByteCount
    let (whole, report) = try process(bytes, configuration)
    #expect(report.peakMemoryByteCount <= estimate)
    for count in [7, 4096] { #expect(try process(bytes, configuration, windowByteCount: count).bytes == whole) }
    var plain = configuration
    plain.trim = nil
    plain.crop = report.crop.map {
      Crop(x: Double($0.x), y: Double($0.y), width: Double($0.width), height: Double($0.height))
    }
    #expect(try process(bytes, plain).bytes == whole)
  }

  @Test("is of each rendition by itself")
  func renditions() throws {
    let configurations = [
      Self.configuration(), ProcessingConfiguration(preferredFormat: .png, alwaysEncode: true),
      Self.configuration(Trim(isEqualVertically: true)),
    ]
    let results = try process(Self.framed, configurations, windowByteCount: 1000).results.map { try $0.get() }
    for (configuration, result) in zip(configurations, results) {
      #expect(try process(Self.framed, configuration).bytes == result.bytes)
    }
    #expect(results.map { $0.report.crop?.height } == [200, nil, 210])
  }

  @Test("reports errors of the image as they are without it, and stops when it is cancelled")
  func errors() throws {
    let file = Array(Self.framed.prefix(Self.framed.count / 2))
    let error = #expect(throws: PipelineError.self) { try process(file, Self.configuration()) }
    #expect(error?.code == .truncatedImage)
    var tolerant = Self.configuration()
    tolerant.tolerateTruncation = true
    #expect(try process(file, tolerant).report.warnings.contains { $0.code == .truncated })
    var reader = ImageReader(limits: ImageLimits())
    reader.configurations = [Self.configuration()]
    reader.cancellation.cancel()
    let end = #expect(throws: PipelineError.self) { try reader.push(Self.framed.span.bytes, isLast: true) }
    #expect(end?.code == .cancelled)
    let memory = #expect(throws: PipelineError.self) {
      try process(Self.framed, Self.configuration(), limits: ImageLimits(memory: 120_000))
    }
    #expect(memory?.code == .limitExceeded)
  }

  @Test("is refused for several frames, and for another frame than the first")
  func frames() throws {
    var generator = SeededGenerator(seed: 3)
    let file = GIFAnimation.random(&generator, frameCount: 4).bytes
    var configuration = ProcessingConfiguration(preferredFormat: .gif, maxFrames: 0, trim: Trim())
    let several = #expect(throws: PipelineError.self) { try process(file, configuration) }
    #expect(several?.code == .unservedField && several?.field == "trim")
    configuration = ProcessingConfiguration(preferredFormat: .png, frameIndex: FrameIndex(1), trim: Trim())
    let other = #expect(throws: PipelineError.self) { try process(file, configuration) }
    #expect(other?.code == .unservedField && other?.field == "frame_index")
    _ = try process(file, ProcessingConfiguration(preferredFormat: .png, trim: Trim()))
  }
}
