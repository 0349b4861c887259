import Fields
import ImageCodecs
import ImagePipeline
import Testing

@Suite("Configuration and presets")
struct ConfigurationTests {
  @Test("the nine presets have the documented bounds and qualities")
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

  @Test("set fields override the preset's, and no name selects default")
  func overrides() throws {
    let catalog = PresetCatalog()
    let changed = try catalog.configuration(
      named: "thumbnail"
    ).overridden(by: ProcessingConfiguration(maxWidth: 10, preferredFormat: .png))
    #expect(changed.maxWidth == 10 && changed.maxHeight == 720 && changed.preferredFormat == .png)
    #expect(try catalog.configuration(named: "") == catalog.configuration(named: "default"))
  }

  @Test("an unknown preset is refused, and the error lists the existing ones")
  func unknownPreset() {
    let error = #expect(throws: PipelineError.self) { try PresetCatalog().configuration(named: "huge") }
    #expect(error?.code == .unknownPreset && error?.field == "preset")
    #expect(error?.message.contains("compressedThumbnail") == true)
  }

  @Test(
    "a value out of range is refused, naming its field",
    arguments: [
      ("compression_quality", ProcessingConfiguration(compressionQuality: 1.5)),
      ("compression_quality", ProcessingConfiguration(compressionQuality: -0.1)),
      ("compression_quality", ProcessingConfiguration(compressionQuality: .nan)),
      ("scale_factor", ProcessingConfiguration(scaleFactor: 0.5)),
      ("scale_factor", ProcessingConfiguration(scaleFactor: .nan)),
      ("scale_factor", ProcessingConfiguration(scaleFactor: .infinity)),
      ("max_width", ProcessingConfiguration(maxWidth: 0)), ("max_height", ProcessingConfiguration(maxHeight: 70_000)),
      ("resize_mode", ProcessingConfiguration(maxWidth: 10, resizeMode: .stretch)),
      ("max_bytes", ProcessingConfiguration(maxBytes: 0)),
      ("target_similarity", ProcessingConfiguration(targetSimilarity: 29)),
      ("target_similarity", ProcessingConfiguration(targetSimilarity: 100.5)),
      ("target_similarity", ProcessingConfiguration(targetSimilarity: .nan)),
      ("jpeg.restart_rows", ProcessingConfiguration(jpeg: JPEGOptions(restartRows: 65_536))),
      ("jpeg.restart_rows", ProcessingConfiguration(jpeg: JPEGOptions(restartRows: -1))),
      ("png.compression_level", ProcessingConfiguration(png: PNGOptions(compressionLevel: 10))),
      ("png.palette_colors", ProcessingConfiguration(png: PNGOptions(paletteColors: 1))),
      ("png.palette_colors", ProcessingConfiguration(png: PNGOptions(paletteColors: 257))),
      ("webp.near_lossless", ProcessingConfiguration(webp: WebPOptions(nearLossless: 101))),
      ("webp.method", ProcessingConfiguration(webp: WebPOptions(method: 7))),
    ])
  func outOfRange(field: String, configuration: ProcessingConfiguration) {
    let error = #expect(throws: PipelineError.self) { try configuration.validate() }
    #expect(error?.code == .invalidField && error?.field == field)
  }

  @Test("every preset is valid")
  func presetsAreValid() throws {
    for preset in PresetCatalog().presets { try preset.configuration.validate() }
  }

  @Test("options of a format are overridden one by one")
  func formatOptions() {
    let preset = ProcessingConfiguration(
      jpeg: JPEGOptions(isProgressive: true, restartRows: 2), png: PNGOptions(compressionLevel: 9))
    let merged = preset.overridden(
      by: ProcessingConfiguration(
        jpeg: JPEGOptions(chromaSubsampling: .half, restartRows: 0), webp: WebPOptions(method: 0)))
    #expect(merged.jpeg == JPEGOptions(isProgressive: true, chromaSubsampling: .half, restartRows: 0))
    #expect(merged.png == PNGOptions(compressionLevel: 9) && merged.webp == WebPOptions(method: 0))
  }
}
