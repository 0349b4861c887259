import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Tensors")
struct TensorTests {
  private static func raw(
    _ tensor: TensorOptions? = nil, _ change: (inout ProcessingConfiguration) -> Void = { _ in }
  ) -> ProcessingConfiguration {
    var configuration = ProcessingConfiguration(
      maxWidth: 48, maxHeight: 40, preferredFormat: .raw, allowUpscale: true, tensor: tensor)
    change(&configuration)
    return configuration
  }

  /// The samples of a PNG result of the same configuration, flattened.
  private static func reference(_ bytes: [UInt8], _ configuration: ProcessingConfiguration) throws -> Pixels {
    var configuration = configuration
    configuration.preferredFormat = .png
    return try Pixels.decode(try process(bytes, configuration).bytes)
  }

  @Test(
    "have the samples of a lossless result, and the size that resize_mode and pad give",
    arguments: ["photo-420.jpg", "photo.png", "gray.png", "orientation-6.jpg", "gray-16.png", "photo-gray.jpg"])
  func samples(name: String) throws {
    let image = Fixture.bytes(name)
    for mode in ResizeMode.allCases {
      let configuration = Self.raw {
        $0.resizeMode = mode
        $0.pad = mode == .fit
        $0.background = Color(red: 9, green: 99, blue: 200)
      }
      let (bytes, report) = try process(image, configuration)
      let pixels = try Self.reference(image, configuration)
      let info = try #require(report.output.tensor)
      #expect(info.shape == [40, 48, 3] && info.strides == [144, 3, 1] && bytes.count == 40 * 48 * 3)
      #expect(report.output.format == "raw" && report.output.size == PixelSize(width: 48, height: 40))
      #expect(
        report.outputByteCount == UInt64(bytes.count) && report.warnings.isEmpty && report.compressionQuality == nil)
      let channelCount = pixels.format.channelCount
      let expected = pixels.planes[0].enumerated().flatMap { index, sample in
        channelCount == 1 ? [sample, sample, sample] : channelCount == 4 && index % 4 == 3 ? [] : [sample]
      }
      #expect(bytes == expected, "\(mode)")
      if mode == .fit {
        let content = info.content
        #expect(content.width < 48 || content.height < 40)
        #expect(content.x == (48 - content.width) / 2 && content.y == (40 - content.height) / 2)
      } else {
        #expect(info.content == PixelRect(x: 0, y: 0, width: info.size.width, height: info.size.height))
      }
    }
  }

  @Test("replace transparency by the background")
  func alpha() throws {
    let configuration = Self.raw { $0.background = Color(red: 200, green: 30, blue: 0) }
    var flat = configuration
    flat.preferredFormat = .jpeg
    flat.compressionQuality = 1
    let (bytes, report) = try process(Fixture.bytes("alpha.png"), configuration)
    #expect(!report.output.hasAlpha && report.output.colorSpace == "rgb")
    let pixels = try Pixels.decode(try process(Fixture.bytes("alpha.png"), flat).bytes)
    let mean = (0..<3).map { channel in
      let samples = stride(from: channel, to: bytes.count, by: 3).map { Double(bytes[$0]) }
      return samples.reduce(0, +) / Double(samples.count)
    }
    for (ours, theirs) in zip(mean, pixels.mean) { #expect(abs(ours - theirs) < 2) }
  }

  @Test("report shape, strides and bit depth of their type and layout")
  func layouts() throws {
    let image = Fixture.bytes("photo-420.jpg")
    let planar = TensorOptions(elementType: .f16, layout: .chw, channels: .bgr)
    let (bytes, report) = try process(image, Self.raw(planar) { $0.resizeMode = .stretch })
    let info = try #require(report.output.tensor)
    #expect(info.shape == [3, 40, 48] && info.strides == [3840, 96, 2] && bytes.count == 3 * 3840)
    #expect(report.output.bitDepth == 16 && (info.channels, info.layout, info.element) == (.bgr, .chw, .f16))
    let gray = TensorOptions(elementType: .f32, channels: .gray)
    let other = try process(image, Self.raw(gray) { $0.resizeMode = .fill }).report.output
    #expect(other.tensor?.shape == [40, 48, 1] && other.colorSpace == "gray" && other.bitDepth == 32)
    #expect(try process(image, ProcessingConfiguration()).report.output.tensor == nil)
  }

  @Test("do not depend on the quality of the request, on never_larger, or on how the image arrives")
  func quality() throws {
    let image = Fixture.bytes("photo-420.jpg")
    let plain = try process(image, Self.raw())
    let other = try process(
      image,
      Self.raw {
        $0.compressionQuality = 0.3
        $0.neverLarger = true
        $0.metadata = .keepAll
      }, windowByteCount: 7)
    #expect(plain.bytes == other.bytes && other.report.warnings.isEmpty)
  }

  @Test("of several crops come from one decode")
  func crops() throws {
    let image = Fixture.bytes("photo-420.jpg")
    let crops = [0.0, 0.25].map { x in
      Self.raw {
        $0.crop = Crop(unit: .fractions, x: x, y: 0, width: 0.5, height: 1)
        $0.flipHorizontal = x > 0
        $0.exactResize = true
      }
    }
    let results = try process(image, crops).results
    for (configuration, result) in zip(crops, results) {
      #expect(try result.get().bytes == process(image, configuration).bytes)
    }
  }

  @Test("of an animation show one frame, and previews are images")
  func animation() throws {
    let (bytes, report) = try process(Fixture.bytes("animated.webp"), Self.raw { $0.resizeMode = .stretch })
    #expect(bytes.count == 48 * 40 * 3 && report.output.frameCount == 1)
    var reader = ImageReader(limits: ImageLimits())
    #expect(try reader.push(Fixture.bytes("photo-420.jpg").span.bytes, isLast: true).isComplete)
    let preview = try reader.previewPlan(Self.raw(TensorOptions(elementType: .f32)), maxSide: 20)
    #expect(try preview.renditions[0].get().outputInfo.format == "jpeg")
  }

  struct Refusal: Sendable, CustomTestStringConvertible {
    var field: String
    var text: String
    var configuration: ProcessingConfiguration
    var testDescription: String { "\(field): \(text)" }
  }

  private static func tensor(_ field: String, _ text: String, _ options: TensorOptions) -> Refusal {
    Refusal(field: "tensor.\(field)", text: text, configuration: raw(options))
  }

  private static let refusals: [Refusal] = [
    Refusal(field: "max_bytes", text: "cannot be combined", configuration: raw { $0.maxBytes = 9 }),
    Refusal(field: "target_similarity", text: "cannot be combined", configuration: raw { $0.targetSimilarity = 80 }),
    Refusal(field: "max_frames", text: "max_frames 0", configuration: raw { $0.maxFrames = 0 }),
    tensor("normalization", "NONE", TensorOptions(normalization: .unit)),
    tensor("scale", "element_type U8", TensorOptions(elementType: .u8, scale: 2)),
    tensor("mean", "F16", TensorOptions(mean: ChannelValues([1]))),
    tensor("normalization", "IMAGENET", TensorOptions(elementType: .f32, channels: .gray, normalization: .imagenet)),
    tensor(
      "standard_deviation", "3 numbers",
      TensorOptions(elementType: .f32, channels: .gray, standardDeviation: ChannelValues([1, 2, 3]))),
    tensor("element_type", "65504", TensorOptions(elementType: .f16, scale: 300)),
  ]

  @Test("refuse what they cannot do, naming the field", arguments: refusals)
  func refuses(refusal: Refusal) throws {
    let error = #expect(throws: PipelineError.self) {
      try process(Fixture.bytes("photo.png"), refusal.configuration)
    }
    #expect(error?.code == .invalidField && error?.field == refusal.field)
    #expect(error?.message.contains(refusal.text) == true, "\(error?.message ?? "")")
  }

  @Test("the rules of fields accept one number or three")
  func rules() {
    func error(_ options: TensorOptions) -> String? {
      do {
        try Self.raw(options).validate()
        return nil
      } catch { return error.field }
    }
    for values in [[], [1, 2], [1, 2, 3, 4], [.nan], [2e6]] {
      #expect(error(TensorOptions(elementType: .f32, mean: ChannelValues(values))) == "tensor.mean", "\(values)")
    }
    #expect(
      error(TensorOptions(elementType: .f32, standardDeviation: ChannelValues([0]))) == "tensor.standard_deviation")
    for scale in [0, -1, .infinity, .nan] {
      #expect(error(TensorOptions(elementType: .f32, scale: scale)) == "tensor.scale")
    }
    #expect(error(TensorOptions(elementType: .f32, scale: 1, mean: ChannelValues([1, -2, 3]))) == nil)
  }

  @Test("above the memory limit of an image are refused, naming the limit")
  func memory() {
    let planar = Self.raw(TensorOptions(elementType: .f32, layout: .chw)) {
      $0.maxWidth = 2000
      $0.maxHeight = 2000
    }
    let error = #expect(throws: PipelineError.self) {
      try process(Fixture.bytes("photo.png"), planar, limits: ImageLimits(memory: 8 << 20))
    }
    #expect(error?.code == .limitExceeded && error?.limit?.limit == 8 << 20)
  }
}
