import Fields
import ImageCodecs
import ImagePipeline
import Testing

@testable import ImageWorkerKit

private typealias Engine = ImagePipeline.ProcessingConfiguration
private typealias Configuration = ImageWorkerKit.ProcessingConfiguration

@Suite("ProcessingConfiguration of ImageWorkerKit")
struct ProcessingConfigurationTests {
  @Test("every field of the contract can be set by its name")
  func names() {
    let names = Configuration.fieldDescriptions.map(\.name)
    #expect(Set(names).count == names.count)
    #expect(names.count > 50 && Set(["max_width", "crop", "keep_exif", "jpeg.progressive"]).isSubset(of: names))
    for field in Engine.fields where !field.options.isEmpty {
      #expect(names.contains { $0 == field.name || $0.hasPrefix("\(field.name).") }, "\(field.name)")
    }
    for description in Configuration.fieldDescriptions {
      #expect(!description.accepted.isEmpty && description.summary.hasSuffix("."), "\(description.name)")
    }
  }

  @Test("texts are read as those of the command line")
  func texts() throws {
    let configuration = try Configuration([
      "max_width": "800", "background": "#ff0000", "gravity": "north-east", "jpeg.progressive": "true",
      "compression_quality": "0.5", "preferred_format": "jpg", "crop": "1,2,30x40",
    ])
    let fields = configuration.fields
    #expect(fields.maxWidth == 800 && fields.background == Color(red: 255, green: 0, blue: 0))
    #expect(fields.gravity == .northEast && fields.jpeg?.isProgressive == true && fields.compressionQuality == 0.5)
    #expect(fields.preferredFormat == .jpeg && fields.crop != nil)
    var filtered = configuration
    try filtered.set("filters", to: ["sepia", "sharpen"])
    #expect(filtered.fields.filters?.map(\.name) == ["sepia", "sharpen"] && filtered.maxWidth == 800)
    try filtered.set("jpeg.progressive", to: "false")
    #expect(filtered.fields.jpeg?.isProgressive == false && filtered != configuration)
  }

  @Test(
    "a text that is not accepted names the field and what is",
    arguments: [
      ("max_width", "many", "max_width"), ("max_width", "0", "max_width"), ("max_widht", "5", "max_widht"),
      ("preferred_format", "tiff", "preferred_format"), ("jpeg.progressive", "perhaps", "jpeg.progressive"),
    ])
  func errors(field: String, text: String, named: String) {
    let error = #expect(throws: ImageProcessingError.self) { try Configuration([field: text]) }
    #expect(error?.reason == .invalidField && error?.field == named)
    #expect(error?.message.contains("must be") ?? false)
    #expect(error?.message.contains("did you mean max_width?") == (field == "max_widht"))
    var configuration = Configuration()
    #expect(throws: ImageProcessingError.self) { try configuration.set("max_width", to: ["1", "2"]) }
  }

  @Test("properties are the fields of their names")
  func properties() {
    var configuration = Configuration()
    configuration.maxWidth = 1
    configuration.maxHeight = 2
    configuration.scaleFactor = 3
    configuration.resizeMode = .fill
    configuration.gravity = .southWest
    configuration.allowUpscale = true
    configuration.pad = true
    configuration.rotation = 270
    configuration.preferredFormat = .webp
    configuration.compressionQuality = 0.25
    configuration.targetSimilarity = 70
    configuration.maxBytes = 5000
    configuration.neverLarger = true
    configuration.maxFrames = 0
    configuration.metadata = .keepAll
    let expected = Engine(
      maxWidth: 1, maxHeight: 2, compressionQuality: 0.25, scaleFactor: 3, preferredFormat: .webp, resizeMode: .fill,
      allowUpscale: true, gravity: .southWest, pad: true, rotation: 270, maxBytes: 5000, metadata: .keepAll,
      targetSimilarity: 70, neverLarger: true, maxFrames: 0)
    #expect(configuration.fields == expected)
    var copy = Configuration()
    copy.maxWidth = configuration.maxWidth
    copy.maxHeight = configuration.maxHeight
    copy.scaleFactor = configuration.scaleFactor
    copy.resizeMode = configuration.resizeMode
    copy.gravity = configuration.gravity
    copy.allowUpscale = configuration.allowUpscale
    copy.pad = configuration.pad
    copy.rotation = configuration.rotation
    copy.preferredFormat = configuration.preferredFormat
    copy.compressionQuality = configuration.compressionQuality
    copy.targetSimilarity = configuration.targetSimilarity
    copy.maxBytes = configuration.maxBytes
    copy.neverLarger = configuration.neverLarger
    copy.maxFrames = configuration.maxFrames
    copy.metadata = configuration.metadata
    #expect(copy == configuration)
  }

  @Test("choices are spelled as in the contract, and set the field of their name")
  func choices() throws {
    var configuration = Configuration()
    for format in [ImageWorkerKit.OutputFormat.original, .jpeg, .png, .webp, .avif, .gif, .jxl, .auto] {
      try configuration.set("preferred_format", to: "\(format)")
      #expect(configuration.preferredFormat == format)
    }
    for mode in [ImageWorkerKit.ResizeMode.fit, .fill, .stretch] {
      try configuration.set("resize_mode", to: "\(mode)")
      #expect(configuration.resizeMode == mode)
    }
    let places: [ImageWorkerKit.Gravity] = [
      .center, .north, .northEast, .east, .southEast, .south, .southWest, .west, .northWest,
    ]
    for place in places {
      try configuration.set("gravity", to: "\(place)")
      #expect(configuration.gravity == place)
    }
    for policy in [ImageWorkerKit.MetadataPolicy.strip, .keepCopyright, .keepAll, .selected] {
      try configuration.set("metadata", to: "\(policy)")
      #expect(configuration.metadata == policy)
    }
    #expect(Set(places).count == places.count && configuration.fields.gravity == .northWest)
  }

  @Test("presets are those of the worker, and fields override theirs")
  func presets() throws {
    #expect(ImageWorkerKit.Preset.builtIn.map(\.name) == ImagePipeline.Preset.builtIn.map(\.name))
    let thumbnail = try Configuration(preset: "thumbnail")
    #expect(thumbnail.maxWidth == 1280 && ImageWorkerKit.Preset.builtIn.contains { $0.configuration == thumbnail })
    let small = thumbnail.overridden(by: try Configuration(["max_width": "100"]))
    #expect(small.maxWidth == 100 && small.maxHeight == thumbnail.maxHeight)
    let error = #expect(throws: ImageProcessingError.self) { try Configuration(preset: "thumbnial") }
    #expect(error?.reason == .unknownPreset && error?.message.contains("did you mean thumbnail?") ?? false)
  }

  @Test("a configuration is checked as a whole")
  func validation() throws {
    var configuration = Configuration()
    configuration.compressionQuality = 80
    let error = #expect(throws: ImageProcessingError.self) { try configuration.validate() }
    #expect(error?.field == "compression_quality" && error?.message.contains("did you mean 0.8?") ?? false)
    configuration.compressionQuality = 0.8
    try configuration.validate()
  }
}
