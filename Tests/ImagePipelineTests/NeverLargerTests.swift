import Fields
import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Results that are not larger than their images")
struct NeverLargerTests {
  /// A JPEG of 200x133 pixels with this quality.
  private static func image(quality: Double) throws -> [UInt8] {
    try process(
      Fixture.bytes("photo-420.jpg"),
      ProcessingConfiguration(maxWidth: 200, compressionQuality: quality, preferredFormat: .jpeg, alwaysEncode: true)
    ).bytes
  }

  private static func configuration(
    _ format: OutputFormat, width: Int = 180, quality: Double = 1, neverLarger: Bool? = true
  ) -> ProcessingConfiguration {
    ProcessingConfiguration(
      maxWidth: width, compressionQuality: quality, preferredFormat: format, neverLarger: neverLarger)
  }

  @Test("the quality falls until the result is not larger, and a warning reports it")
  func lowers() throws {
    for (format, quality) in [(OutputFormat.jpeg, 0.3), (.jpeg, 0.7), (.webp, 0.9), (.original, 0.5)] {
      let image = try Self.image(quality: quality)
      let plain = try process(image, Self.configuration(format, neverLarger: nil))
      #expect(plain.bytes.count > image.count && plain.report.warnings.map(\.code) == [.largerThanImage])
      let result = try process(image, Self.configuration(format))
      #expect(result.bytes.count <= image.count && result.bytes.count > image.count / 2, "\(format)")
      #expect(result.report.outputByteCount == UInt64(result.bytes.count))
      #expect(result.report.output.size == plain.report.output.size)
      #expect(try #require(result.report.compressionQuality) < 1)
      #expect(result.report.warnings.map(\.code) == [.qualityReduced])
    }
  }

  @Test("a result that is smaller anyway is the same, without a warning")
  func unchanged() throws {
    for format in [OutputFormat.jpeg, .webp] {
      let image = try Self.image(quality: 0.9)
      let result = try process(image, Self.configuration(format, width: 150, quality: 0.6))
      #expect(result.bytes.count <= image.count && result.report.warnings.isEmpty)
      let plain = try process(image, Self.configuration(format, width: 150, quality: 0.6, neverLarger: false))
      #expect(result.bytes == plain.bytes)
    }
  }

  @Test("a larger lossless result is kept, with a warning")
  func lossless() throws {
    let image = try Self.image(quality: 0.5)
    let result = try process(image, Self.configuration(.png))
    #expect(result.bytes.count > image.count)
    #expect(result.report.warnings.count == 1 && result.report.warnings[0].message.contains("lossless"))
    #expect(try result.bytes == process(image, Self.configuration(.png, neverLarger: nil)).bytes)
  }

  @Test("a result that no allowed quality makes small enough has the requested one, with a warning")
  func unreachable() throws {
    let image = try Self.image(quality: 0.05)
    for format in [OutputFormat.jpeg, .webp] {
      let result = try process(image, Self.configuration(format, width: 199))
      #expect(result.bytes.count > image.count && result.report.compressionQuality == 1)
      #expect(result.report.warnings.count == 1)
      #expect(result.report.warnings[0].message.contains(format == .jpeg ? "quality below 0.2" : "quality below 0.6"))
      #expect(try result.bytes == process(image, Self.configuration(format, width: 199, neverLarger: nil)).bytes)
    }
  }

  @Test("does not apply to parts of the image, nor to what is enlarged or padded")
  func other() throws {
    let image = try Self.image(quality: 0.3)
    var enlarged = Self.configuration(.jpeg, width: 220)
    enlarged.allowUpscale = true
    var padded = Self.configuration(.jpeg)
    (padded.maxHeight, padded.pad) = (180, true)
    var cropped = Self.configuration(.jpeg)
    cropped.crop = Crop(x: 0, y: 0, width: 200, height: 132)
    for var configuration in [enlarged, padded, cropped] {
      let result = try process(image, configuration)
      #expect(result.bytes.count > image.count && result.report.warnings.map(\.code) == [.largerThanImage])
      configuration.neverLarger = nil
      #expect(try result.bytes == process(image, configuration).bytes)
    }
  }

  @Test("max_bytes and target_similarity come first")
  func combined() throws {
    let image = try Self.image(quality: 0.5)
    var configuration = Self.configuration(.jpeg)
    configuration.maxBytes = UInt64(image.count * 2)
    let lowered = try process(image, configuration)
    #expect(lowered.bytes.count <= image.count)
    #expect(lowered.report.warnings.contains { $0.message.contains("never_larger limits the result") })
    // The rule keeps as much quality as a size limit of as many bytes.
    var limited = Self.configuration(.jpeg, neverLarger: false)
    limited.maxBytes = UInt64(image.count)
    #expect(try lowered.bytes.count >= process(image, limited).bytes.count * 19 / 20)
    configuration.maxBytes = UInt64(image.count * 3 / 4)
    let small = try process(image, configuration)
    #expect(small.bytes.count <= image.count * 3 / 4 && small.report.warnings.isEmpty)
    configuration.maxBytes = nil
    configuration.targetSimilarity = 95
    let similar = try process(image, configuration)
    #expect(try #require(similar.report.similarity) >= 95 && similar.bytes.count > image.count)
    #expect(similar.report.warnings.contains { $0.message.contains("target_similarity comes first") })
  }

  @Test("a result of far fewer pixels is streamed, and a larger one is not expected")
  func streamed() throws {
    let image = try Self.image(quality: 0.5)
    let configuration = Self.configuration(.jpeg, width: 20)
    #expect(try process(image, configuration).report.warnings.isEmpty)
    func workingSet(_ neverLarger: Bool) throws -> UInt64 {
      var reader = ImageReader(limits: ImageLimits())
      #expect(try reader.push(image.span.bytes, isLast: true).isComplete)
      return try reader.plan(Self.configuration(.jpeg, width: 20, neverLarger: neverLarger)).workingSetByteCount
    }
    #expect(try workingSet(true) == workingSet(false))
  }

  /// An image of noise whose file is larger than any result of its size.
  private static func noise() throws -> [UInt8] {
    try encodedImage(noiseSamples(640 * 480 * 3), width: 640, height: 480, pixelFormat: .rgb8)
  }

  @Test("a result is emitted as soon as the file is known to be large enough")
  func released() throws {
    let image = try Self.noise()
    var configuration = Self.configuration(.jpeg, width: 640)
    let whole = try process(image, configuration)
    configuration.neverLarger = nil
    #expect(try process(image, configuration).bytes == whole.bytes && whole.report.warnings.isEmpty)
    configuration.neverLarger = true
    var reader = ImageReader(limits: ImageLimits())
    let start = Array(image.prefix(100))
    var consumed = try reader.push(start.span.bytes, isLast: false).consumedByteCount
    let plan = try reader.plan(configuration)
    let route = try reader.takeRoute(plan, cancellation: Cancellation())
    var bytes: [UInt8] = []
    var startByteCount: Int?
    while consumed < image.count {
      let end = min(image.count, consumed + 5000)
      let portion = Array(image[consumed..<end])
      let isDone = try route.push(portion.span.bytes, isLast: end == image.count) { bytes.append($0) }
      #expect(isDone == (end == image.count))
      if !bytes.isEmpty, startByteCount == nil { startByteCount = end }
      consumed = end
    }
    #expect(bytes == whole.bytes)
    let sufficient = 640 * 480 * 2
    #expect(try sufficient...sufficient + 150_000 ~= #require(startByteCount) && sufficient < image.count)
  }

  @Test("is ignored with a warning if the memory limit does not allow to buffer the result")
  func memory() throws {
    let image = try Self.image(quality: 0.3)
    func plan(memory: Int, _ neverLarger: Bool) throws -> Plan {
      var reader = ImageReader(limits: ImageLimits(memory: memory))
      #expect(try reader.push(image.span.bytes, isLast: true).isComplete)
      return try reader.plan(Self.configuration(.jpeg, neverLarger: neverLarger))
    }
    let minimum = try Int(plan(memory: 1 << 28, false).workingSetByteCount)
    #expect(try plan(memory: 1 << 28, true).workingSetByteCount > UInt64(minimum))
    let plan = try plan(memory: minimum, true)
    #expect(plan.workingSetByteCount == UInt64(minimum) && plan.knownWarnings.map(\.code) == [.neverLargerIgnored])
  }

  @Test("a larger result has a warning with the sizes and a remedy, unless there is none")
  func larger() throws {
    let image = try Self.image(quality: 0.3)
    var similar = Self.configuration(.jpeg, neverLarger: nil)
    similar.targetSimilarity = 95
    let remedies = [
      (Self.configuration(.jpeg, neverLarger: nil), "lower compression_quality"),
      (Self.configuration(.webp, neverLarger: false), "lower compression_quality"),
      (Self.configuration(.png, neverLarger: nil), "request a lossy format"), (similar, "lower target_similarity"),
    ]
    for (configuration, remedy) in remedies {
      let result = try process(image, configuration)
      let warning = try #require(result.report.warnings.first)
      #expect(result.report.warnings.count == 1 && warning.code == .largerThanImage)
      #expect(warning.message.hasSuffix("; \(remedy)"))
      #expect(warning.parameters == ["bytes": "\(result.bytes.count)", "image_bytes": "\(image.count)"])
    }
    let coarse = try Self.image(quality: 0.05)
    for quality in [0.2, 0.21] {
      let result = try process(coarse, Self.configuration(.jpeg, width: 199, quality: quality, neverLarger: nil))
      #expect(result.bytes.count > coarse.count && result.report.warnings.isEmpty == (quality == 0.2))
    }
    let dot = try encodedImage([9, 9, 9], width: 1, height: 1, pixelFormat: .rgb8)
    let trivial = try process(dot, ProcessingConfiguration(preferredFormat: .jpeg))
    #expect(trivial.bytes.count > dot.count && trivial.report.warnings.isEmpty)
  }

  @Test("a preview has no warning of its size")
  func preview() throws {
    let image = try Self.image(quality: 0.05)
    var reader = ImageReader(limits: ImageLimits())
    let rest = Array(image.dropFirst(try reader.push(image.span.bytes, isLast: true).consumedByteCount))
    let plan = try reader.previewPlan(ProcessingConfiguration(), maxSide: 199)
    let route = try reader.takeRoute(plan, cancellation: Cancellation())
    var byteCount = 0
    #expect(try route.push(rest.span.bytes, isLast: false) { _, bytes in byteCount += bytes.byteCount })
    guard case .success(let report) = route.outcome(of: 0) else {
      Issue.record("the preview did not end")
      return
    }
    #expect(byteCount > image.count && report.warnings.isEmpty)
  }

  @Test("a report waits for as many bytes as the result has, and counts those that follow the image")
  func trailing() throws {
    let image = try Self.image(quality: 0.3)
    var configuration = Self.configuration(.jpeg, neverLarger: nil)
    let whole = try process(image, configuration)
    let longer = image + [UInt8](repeating: 0, count: whole.bytes.count - image.count)
    for isCropped in [false, true] {
      if isCropped { configuration.crop = Crop(x: 0, y: 0, width: 200, height: 100) }
      for windowByteCount in [1, 61, 4096, Int.max] {
        for (file, isLarger) in [(image, true), (Array(longer.dropLast()), true), (longer, false)] {
          let result = try process(file, configuration, windowByteCount: windowByteCount)
          #expect(isCropped || result.bytes == whole.bytes)
          let size = result.report.warnings.first?.parameters["image_bytes"]
          #expect(isCropped || size == (isLarger ? "\(file.count)" : nil))
          #expect(!isCropped || size == (result.bytes.count > file.count ? "\(file.count)" : nil))
        }
      }
    }
  }

  @Test("the result is the same however the upload is split", arguments: [OutputFormat.jpeg, .webp])
  func cuts(format: OutputFormat) throws {
    let names = ["photo-progressive.jpg", "photo.webp", "gray.png", "photo.bmp", "photo.gif"]
    let images = try [Self.image(quality: 0.4)] + names.map { Fixture.bytes($0) }
    for image in images {
      let configuration = Self.configuration(format, width: 110)
      let whole = try process(image, configuration)
      for windowByteCount in [1, 61, 4096] {
        let split = try process(image, configuration, windowByteCount: windowByteCount)
        #expect(split.bytes == whole.bytes && split.report.warnings == whole.report.warnings)
      }
      #expect(whole.report.inputByteCount == UInt64(image.count))
    }
  }

  @Test("bytes after the image count")
  func trailingBytes() throws {
    let image = try Self.image(quality: 0.3)
    let longer = image + [UInt8](repeating: 7, count: 2000)
    for windowByteCount in [100, .max] {
      let result = try process(longer, Self.configuration(.jpeg), windowByteCount: windowByteCount)
      #expect(result.bytes.count > image.count && result.bytes.count <= longer.count)
      #expect(result.report.inputByteCount == UInt64(longer.count))
    }
  }

  @Test("the working set covers all trials", arguments: [OutputFormat.jpeg, .webp])
  func workingSet(format: OutputFormat) throws {
    let image = try Self.image(quality: 0.3)
    var reader = ImageReader(limits: ImageLimits())
    #expect(try reader.push(image.span.bytes, isLast: true).isComplete)
    let estimate = try reader.plan(Self.configuration(format)).workingSetByteCount
    #expect(try process(image, Self.configuration(format)).report.peakMemoryByteCount <= estimate)
  }

  @Test("is on in the built-in presets with a size")
  func presets() throws {
    for preset in Preset.builtIn {
      #expect((preset.configuration.neverLarger ?? false) == (preset.name != Preset.defaultName))
    }
    let image = try Self.image(quality: 0.3)
    for name in ["highDefinition", "thumbnail", "upload"] {
      let configuration = try PresetCatalog().configuration(
        named: name
      ).overridden(by: ProcessingConfiguration(maxWidth: 190))
      #expect(try process(image, configuration).bytes.count <= image.count, "\(name)")
    }
  }
}
