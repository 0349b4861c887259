import ImagePipeline
import Testing

@Suite("Configuration and presets")
struct ConfigurationTests {
  @Test("there are the nine presets, with the bounds and qualities that their names promise")
  func builtInPresets() throws {
    let table: [(String, Int?, Int?, Double, OutputFormat)] = [
      ("default", nil, nil, 1, .original), ("highDefinition", 1920, 1080, 1, .jpeg),
      ("thumbnail", 1280, 720, 1, .jpeg), ("compressedThumbnail", 1280, 720, 0.8, .jpeg),
      ("favicon", 64, 64, 1, .jpeg), ("compressedFavicon", 64, 64, 0.8, .jpeg), ("preview", 300, 300, 0.8, .jpeg),
      ("upload", 2000, 2000, 0.8, .jpeg), ("widget", 1024, nil, 0.8, .jpeg),
    ]
    #expect(PresetCatalog().presets.map(\.name) == table.map(\.0))
    for (name, width, height, quality, format) in table {
      let configuration = try PresetCatalog().configuration(named: name)
      #expect(configuration.maxWidth == width && configuration.maxHeight == height, "\(name)")
      #expect(configuration.compressionQuality == quality && configuration.preferredFormat == format, "\(name)")
    }
  }

  @Test("set fields override the preset's, and no name means default")
  func overrides() throws {
    let catalog = PresetCatalog()
    let changed = try catalog.configuration(
      named: "thumbnail", overrides: ProcessingConfiguration(maxWidth: 10, preferredFormat: .png))
    #expect(changed.maxWidth == 10 && changed.maxHeight == 720 && changed.preferredFormat == .png)
    #expect(try catalog.configuration(named: "") == catalog.configuration(named: "default"))
  }

  @Test("an unknown preset is refused, and the error lists those there are")
  func unknownPreset() {
    let error = #expect(throws: PipelineError.self) { try PresetCatalog().configuration(named: "huge") }
    #expect(error?.code == .unknownPreset && error?.field == "preset")
    #expect(error?.message.contains("compressedThumbnail") == true)
  }

  @Test(
    "a value out of range is refused by its field",
    arguments: [
      ("compression_quality", ProcessingConfiguration(compressionQuality: 1.5)),
      ("compression_quality", ProcessingConfiguration(compressionQuality: -0.1)),
      ("compression_quality", ProcessingConfiguration(compressionQuality: .nan)),
      ("scale_factor", ProcessingConfiguration(scaleFactor: 0.5)),
      ("scale_factor", ProcessingConfiguration(scaleFactor: .nan)),
      ("scale_factor", ProcessingConfiguration(scaleFactor: .infinity)),
      ("max_width", ProcessingConfiguration(maxWidth: 0)), ("max_height", ProcessingConfiguration(maxHeight: 70_000)),
      ("resize_mode", ProcessingConfiguration(maxWidth: 10, resizeMode: .stretch)),
    ])
  func outOfRange(field: String, configuration: ProcessingConfiguration) {
    let error = #expect(throws: PipelineError.self) { try configuration.validate() }
    #expect(error?.code == .invalidField && error?.field == field)
  }

  @Test("a byte limit is refused as not served, which makes widget refused")
  func widget() throws {
    let widget = try PresetCatalog().configuration(named: "widget")
    let error = #expect(throws: PipelineError.self) { try widget.validate() }
    #expect(error?.code == .unservedField && error?.field == "max_bytes")
  }
}
