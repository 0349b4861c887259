import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

/// Changes what is in regions, and requires that results do not show it.
@Suite("Hidden regions")
struct RegionTests {
  private static let (width, height) = (203, 151)
  private static let area = (x: 50, y: 33, width: 90, height: 77)
  private static let crop = Crop(x: 50, y: 33, width: 90, height: 77)

  /// An image of noise on a gradient.
  private static func samples(_ format: PixelFormat) -> [UInt8] {
    let noise = noiseSamples(width * height * format.pixelByteCount)
    return noise.indices.map { UInt8((Int(noise[$0]) + $0 / 300) / 2 & 255) }
  }

  /// Returns samples of which those in the area are others.
  private static func changed(_ samples: [UInt8], _ format: PixelFormat, by change: (Int, Int, UInt8) -> UInt8)
    -> [UInt8]
  {
    var samples = samples
    for y in area.y..<area.y + area.height {
      for x in area.x..<area.x + area.width {
        for byte in 0..<format.pixelByteCount {
          let index = (y * width + x) * format.pixelByteCount + byte
          samples[index] = change(x, y, samples[index])
        }
      }
    }
    return samples
  }

  private static func image(_ samples: [UInt8], _ format: PixelFormat, as file: ImageFormat = .png) throws -> [UInt8] {
    try encodedImage(samples, width: width, height: height, pixelFormat: format, as: file)
  }

  private static func configuration(
    _ effect: Region.Effect, _ shape: Region.Shape = .rectangle,
    _ change: (inout ProcessingConfiguration) -> Void = { _ in }
  ) -> ProcessingConfiguration {
    var configuration = ProcessingConfiguration(
      compressionQuality: 0.8, regions: [Region(shape: shape, area: crop, effect: effect)])
    change(&configuration)
    return configuration
  }

  /// Configurations with results of many kinds.
  private static let shapes: [@Sendable (inout ProcessingConfiguration) -> Void] = [
    { _ in },
    { $0.maxWidth = 60 },
    { ($0.maxWidth, $0.maxHeight, $0.resizeMode) = (37, 80, .fill) },
    { ($0.maxWidth, $0.allowUpscale) = (333, true) },
    { $0.crop = Crop(x: 20, y: 60, width: 100, height: 60) },
    { ($0.maxWidth, $0.exactResize) = (70, true) },
    { ($0.maxWidth, $0.resizeInLinearLight) = (70, true) },
    { ($0.maxBytes, $0.filters) = (20_000, [Filter(name: "blur")]) },
  ]

  @Test("that are filled leave nothing of their pixels in any result", arguments: OutputFormat.allCases)
  func filled(output: OutputFormat) throws {
    guard ImageFormat(rawValue: output.rawValue)?.isEncodable ?? true else { return }
    for format in [PixelFormat.gray8, .rgb8, .rgba8] {
      let samples = Self.samples(format)
      let images = [samples, Self.changed(samples, format) { ~$2 &+ UInt8(($0 * $1) & 255) }]
      let files = try images.map { try Self.image($0, format) }
      for shape in Self.shapes {
        let configuration = Self.configuration(.fill) {
          $0.preferredFormat = output
          shape(&$0)
          if [.original, .png, .gif, .raw].contains(output) { $0.maxBytes = nil }
        }
        let results = try files.map { try process($0, configuration) }
        #expect(results[0].bytes == results[1].bytes, "\(output) \(format)")
        // The comparison means something: without the region, results differ.
        if configuration.maxBytes == nil {
          var plain = configuration
          plain.regions = nil
          let (one, other) = (try process(files[0], plain).bytes, try process(files[1], plain).bytes)
          #expect(one != other)
        }
      }
    }
  }

  @Test(
    "leave nothing of the blocks of a JPEG, at any scale of decoding", arguments: [ChromaSubsampling.full, .quarter])
  func jpeg(sampling: ChromaSubsampling) throws {
    // Whole MCUs of 16 pixels are other ones.
    let area = (x: 64, y: 32, width: 96, height: 80)
    let samples = Self.samples(.rgb8)
    var other = samples
    for y in area.y..<area.y + area.height {
      for x in 3 * area.x..<3 * (area.x + area.width) {
        other[y * Self.width * 3 + x] = ~samples[y * Self.width * 3 + x]
      }
    }
    let files = try [samples, other].map { samples in
      try process(
        Self.image(samples, .rgb8),
        // At a lower quality the coding of a block depends on others.
        ProcessingConfiguration(
          compressionQuality: 1, preferredFormat: .jpeg, jpeg: JPEGOptions(chromaSubsampling: sampling))
      ).bytes
    }
    for width in [200, 90, 40, 20] {
      for effect in Region.Effect.allCases {
        let region = Region(area: Crop(x: 68, y: 40, width: 88, height: 68), effect: effect)
        let configuration = ProcessingConfiguration(
          maxWidth: width, preferredFormat: .png, regions: [region])
        let results = try files.map { try process($0, configuration, windowByteCount: 1000) }
        #expect(results.allSatisfy { $0.report.hiddenRegions == [PixelRect(x: 64, y: 32, width: 96, height: 80)] })
        if effect == .fill { #expect(results[0].bytes == results[1].bytes, "\(width)") }
        // The blocks of both images differ, but what is far from them is the same.
        let pixels = try results.map { try Grid(decoding: $0.bytes) }
        #expect(pixels[0].pixel(0, 0) == pixels[1].pixel(0, 0))
      }
    }
  }

  @Test(
    "that are pixelated or blurred show nothing but the means of their blocks",
    arguments: [Region.Effect.pixelate, .blur])
  func blocks(effect: Region.Effect) throws {
    // Columns and rows of blocks, of a quarter of 92 pixels: the area and its margin.
    let (left, top) = (Self.area.x - 1, Self.area.y - 1)
    let (columns, rows) = ((0...4).map { left + 92 * $0 / 4 }, (0...3).map { top + 79 * $0 / 3 })
    for format in [PixelFormat.gray8, .rgb8, .rgba8] {
      var samples = Self.samples(format)
      if format == .rgba8 { for index in stride(from: 3, to: samples.count, by: 4) { samples[index] = 255 } }
      // Pixels change places in their blocks.
      var mixed = samples
      var generator = SeededGenerator(seed: 7)
      for (x0, x1) in zip(columns, columns.dropFirst()) {
        for (y0, y1) in zip(rows, rows.dropFirst()) {
          let places = (y0..<y1).flatMap { y in (x0..<x1).map { y * Self.width + $0 } }
          for (from, to) in zip(places, places.shuffled(using: &generator)) {
            for byte in 0..<format.pixelByteCount {
              mixed[to * format.pixelByteCount + byte] = samples[from * format.pixelByteCount + byte]
            }
          }
        }
      }
      try #require(mixed != samples)
      let files = try [samples, mixed].map { try Self.image($0, format) }
      for width in [203, 77] {
        let configuration = Self.configuration(effect) { ($0.preferredFormat, $0.maxWidth) = (.png, width) }
        let results = try files.map { try process($0, configuration).bytes }
        #expect(results[0] == results[1])
      }
      guard effect == .pixelate else { continue }
      let result = try Pixels.decode(process(files[0], Self.configuration(effect) { $0.preferredFormat = .png }).bytes)
      for (column, row) in [(0, 0), (3, 1), (2, 2)] {
        var sum = 0
        for y in rows[row]..<rows[row + 1] {
          for x in columns[column]..<columns[column + 1] {
            sum += Int(samples[(y * Self.width + x) * format.channelCount])
          }
        }
        let count = (rows[row + 1] - rows[row]) * (columns[column + 1] - columns[column])
        for (x, y) in [(columns[column], rows[row]), (columns[column + 1] - 1, rows[row + 1] - 1)] {
          #expect(result.sample(x: x, y: y) == (sum + count / 2) / count)
        }
      }
    }
  }

  @Test("are filled with their color, and leave the pixels beside them")
  func color() throws {
    let samples = Self.samples(.rgb8)
    let file = try Self.image(samples, .rgb8)
    for shape in [Region.Shape.rectangle, .ellipse] {
      var configuration = Self.configuration(.fill, shape) { $0.preferredFormat = .png }
      configuration.regions?[0].color = Color(red: 10, green: 200, blue: 30)
      let result = try Grid(decoding: process(file, configuration).bytes)
      let original = try Grid(decoding: file)
      for y in 0..<Self.height {
        for x in 0..<Self.width {
          let (dx, dy) = ((Double(x) + 0.5 - 95) / 45, (Double(y) + 0.5 - 71.5) / 38.5)
          let (isInside, isNear) =
            shape == .ellipse
            ? (dx * dx + dy * dy <= 1, dx * dx + dy * dy < 1.15)
            : (abs(dx) < 1 && abs(dy) < 1, abs(dx) < 1.03 && abs(dy) < 1.03)
          if isInside { #expect(result.pixel(x, y) == [10, 200, 30]) }
          if !isNear { #expect(result.pixel(x, y) == original.pixel(x, y)) }
        }
      }
    }
  }

  @Test("are where the displayed image has them", arguments: 1...8)
  func orientation(of number: Int) throws {
    let file = Fixture.bytes("orientation-\(number).png")
    let whole = ProcessingConfiguration(preferredFormat: .png, alwaysEncode: true)
    let shown = try Grid(decoding: process(file, whole).bytes)
    var hiding = whole
    hiding.regions = [Region(area: Crop(x: 3, y: 5, width: 8, height: 4), color: Color(red: 1, green: 2, blue: 3))]
    let (bytes, report) = try process(file, hiding)
    let result = try Grid(decoding: bytes)
    #expect(report.hiddenRegions == [PixelRect(x: 2, y: 4, width: 10, height: 6)])
    for y in 0..<shown.height {
      for x in 0..<shown.width {
        let isHidden = (2..<12).contains(x) && (4..<10).contains(y)
        #expect(result.pixel(x, y) == (isHidden ? [1, 2, 3] : shown.pixel(x, y)))
      }
    }
  }

  @Test("are hidden in every frame of an animation, with the colors of that frame")
  func animation() throws {
    var generator = SeededGenerator(seed: 3)
    var file = GIFAnimation.random(&generator, frameCount: 5)
    (file.width, file.height) = (40, 40)
    for index in file.frames.indices { file.frames[index].delay = 20 }
    for effect in Region.Effect.allCases {
      let region = Region(area: Crop(unit: .fractions, x: 0.25, y: 0.25, width: 0.5, height: 0.5), effect: effect)
      let configuration = ProcessingConfiguration(preferredFormat: .png, maxFrames: 0, regions: [region])
      let (bytes, _) = try process(file.bytes, configuration)
      let frames = try Pixels.decode(bytes, frames: (0, 0))
      try #require(frames.frames.count > 2)
      for index in frames.frames.indices {
        let alone = try process(
          file.bytes, ProcessingConfiguration(preferredFormat: .png, frameIndex: FrameIndex(index), regions: [region]),
          countedFrames: nil)
        let still = try Grid(decoding: alone.bytes)
        if effect == .fill { #expect(still.pixel(20, 20) == [0, 0, 0]) }
      }
    }
  }

  @Test("of one rendition are not those of another, and previews have them")
  func renditions() throws {
    let samples = Self.samples(.rgb8)
    let files = try [samples, Self.changed(samples, .rgb8) { ~$2 &+ UInt8($0 & 255) }].map { try Self.image($0, .rgb8) }
    let plain = ProcessingConfiguration(maxWidth: 100, preferredFormat: .png)
    let hiding = Self.configuration(.fill) { ($0.maxWidth, $0.preferredFormat) = (100, .png) }
    let results = try files.map { try process($0, [plain, hiding, plain]).results.map { try $0.get().bytes } }
    let alone = try process(files[0], plain).bytes
    #expect(results[0][0] == results[0][2] && results[0][0] == alone)
    #expect(results[0][1] == results[1][1] && results[0][0] != results[1][0])
    let previews = try files.map { file in
      var reader = ImageReader(limits: ImageLimits())
      let consumed = try reader.push(file.span.bytes, isLast: true).consumedByteCount
      let plan = try reader.previewPlan(hiding, maxSide: 50)
      let route = try reader.takeRoute(plan, cancellation: Cancellation())
      var bytes: [UInt8] = []
      _ = try route.push(file.span.bytes.extracting(droppingFirst: consumed), isLast: true) { _, span in
        span.withUnsafeBytes { bytes.append(contentsOf: $0) }
      }
      return bytes
    }
    #expect(previews[0] == previews[1])
  }

  @Test("leave nothing in the facts of the image")
  func facts() throws {
    let samples = Self.samples(.rgb8)
    let images = [samples, Self.changed(samples, .rgb8) { _, _, sample in sample / 8 }]
    let files = try images.map { try Self.image($0, .rgb8) }
    let hiding = Self.configuration(.fill) { ($0.maxWidth, $0.preferredFormat, $0.facts) = (150, .png, true) }
    var plain = hiding
    plain.regions = nil
    let hidden = try files.map { try process($0, hiding).report.facts }
    let shown = try files.map { try process($0, plain).report.facts }
    #expect(hidden[0] != nil && hidden[0] == hidden[1])
    #expect(shown[0] != shown[1])
  }

  @Test("do not depend on the windows of input, nor on pauses of output")
  func windows() throws {
    let file = try Self.image(Self.samples(.rgb8), .rgb8)
    for effect in Region.Effect.allCases {
      for shape in Self.shapes {
        let configuration = Self.configuration(effect, .ellipse) {
          shape(&$0)
          $0.maxBytes = nil
        }
        let whole = try process(file, configuration).bytes
        for count in [1, 1000] { #expect(try process(file, configuration, windowByteCount: count).bytes == whole) }
      }
    }
  }

  @Test("of large results pass through pauses of output unchanged", arguments: Region.Effect.allCases)
  func pauses(effect: Region.Effect) throws {
    let side = 900
    let file = try encodedImage(noiseSamples(side * side * 3), width: side, height: side, pixelFormat: .rgb8)
    let region = Region(area: Crop(x: 100, y: 100, width: 700, height: 700), effect: effect)
    let configuration = ProcessingConfiguration(
      preferredFormat: .png, crop: Crop(x: 50, y: 50, width: 800, height: 820), regions: [region])
    let result = try Grid(decoding: process(file, configuration).bytes)
    var whole = configuration
    whole.crop = nil
    let reference = try Grid(decoding: process(file, whole).bytes).cropped(x: 50, y: 50, width: 800, height: 820)
    #expect(result == reference)
    let original = try Grid(decoding: file)
    #expect(reference.pixel(10, 10) == original.pixel(60, 60) && reference.pixel(799, 819) == original.pixel(849, 869))
  }

  @Test("keep an image from being passed through")
  func passthrough() throws {
    for name in ["photo-420.jpg", "photo.png", "photo.webp", "orientation-6.jpg"] {
      let file = Fixture.bytes(name)
      let region = Region(area: Crop(x: 0, y: 0, width: 5, height: 5))
      let plain = try process(file, ProcessingConfiguration()).report
      let hidden = try process(file, ProcessingConfiguration(regions: [region])).report
      #expect(plain.isPassedThrough || name.hasPrefix("orientation"))
      #expect(!hidden.isPassedThrough)
    }
  }

  @Test("overlap in their order, with those that are filled on top")
  func overlap() throws {
    let samples = Self.samples(.rgb8)
    let files = try [samples, Self.changed(samples, .rgb8) { ~$2 &+ UInt8($1 & 255) }].map { try Self.image($0, .rgb8) }
    let wide = Crop(x: 20, y: 10, width: 160, height: 130)
    for effect in [Region.Effect.pixelate, .blur] {
      let configuration = ProcessingConfiguration(
        preferredFormat: .png, regions: [Region(area: Self.crop), Region(area: wide, effect: effect)])
      let results = try files.map { try process($0, configuration).bytes }
      #expect(results[0] == results[1])
      #expect(try Grid(decoding: results[0]).pixel(95, 70) == [0, 0, 0])
    }
  }

  @Test("that hide nothing of the image are refused, naming their field")
  func refusals() throws {
    let file = try Self.image(Self.samples(.rgb8), .rgb8)
    func error(_ regions: [Region]) -> PipelineError? {
      #expect(throws: PipelineError.self) { try process(file, ProcessingConfiguration(regions: regions)) }
    }
    let good = Region(area: Self.crop)
    let beside = error([good, Region(area: Crop(x: 203, y: 0, width: 5, height: 5))])
    #expect(beside?.code == .invalidField && beside?.field == "regions[1].area")
    #expect(error([Region(area: Crop(x: 1, y: 1, width: 0, height: 5))])?.field == "regions[0].area.width")
    #expect(error(Array(repeating: good, count: Region.maxCount + 1))?.field == "regions")
    // What lies beyond an edge is ignored.
    let over = Region(area: Crop(x: 200, y: 150, width: 1e300, height: 9))
    let report = try process(file, ProcessingConfiguration(regions: [over])).report
    #expect(report.hiddenRegions == [PixelRect(x: 199, y: 149, width: 4, height: 2)])
  }

  @Test("are charged to the image's memory as planned", arguments: Fixture.names)
  func memory(name: String) throws {
    let bytes = Fixture.bytes(name)
    for effect in Region.Effect.allCases {
      let region = Region(area: Crop(unit: .fractions, x: 0.1, y: 0.1, width: 0.8, height: 0.8), effect: effect)
      let configuration = ProcessingConfiguration(maxWidth: 100, preferredFormat: .png, regions: [region])
      var reader = ImageReader(limits: ImageLimits())
      guard try reader.push(bytes.span.bytes, isLast: true).isComplete else { return }
      let estimate = try reader.plan(configuration).workingSetByteCount
      let peak = try process(bytes, configuration).report.peakMemoryByteCount
      #expect(peak <= estimate && estimate <= 2 * peak, "held \(peak), \(estimate) were expected")
    }
  }
}
