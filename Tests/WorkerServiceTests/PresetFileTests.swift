import GRPCCore
import GRPCProtobuf
import ImagePipeline
import SwiftProtobuf
import TestSupport
import Testing
import WorkerProtocol

@testable import WorkerService

@Suite("Presets from a file")
struct PresetFileTests {
  private static let text = """
    presets:
      card:
        description: Cards in lists of articles.
        max_width: 640
        compression_quality: 0.5
        preferred_format: webp
        background: {red: 1, green: 2, blue: 3}
        allow_upscale: true
        filters:
          - name: sharpen
            parameters: {radius: 0.8}
          - {name: sepia, intensity: 0.25}
      thumbnail: {max_width: 9, max_height: 8, resize_mode: stretch}
    """

  @Test("sets fields by the contract's names, in the file's order")
  func fields() throws {
    let presets = try PresetFile(yaml: Self.text, name: "p.yaml").presets
    let card = ProcessingConfiguration(
      maxWidth: 640, compressionQuality: 0.5, preferredFormat: .webp, allowUpscale: true,
      background: Color(red: 1, green: 2, blue: 3),
      filters: [Filter(name: "sharpen", parameters: ["radius": 0.8]), Filter(name: "sepia", intensity: 0.25)])
    #expect(
      presets == [
        Preset(name: "card", description: "Cards in lists of articles.", configuration: card),
        Preset(
          name: "thumbnail", description: "",
          configuration: ProcessingConfiguration(maxWidth: 9, maxHeight: 8, resizeMode: .stretch)),
      ])
  }

  @Test("has colors as text or by their channels")
  func colors() throws {
    let yaml = """
      presets:
        a:
          background: '#010203'
          trim: {color: "#fff"}
          regions:
            - {effect: fill, color: "#112233", area: {width: 5, height: 5}}
            - {effect: fill, color: {red: 9}, area: {width: 5, height: 5}}
          overlays: [{text: {text: x, color: '#445566', box_color: '#778899'}}]
      """
    let fields = try PresetFile(yaml: yaml, name: "p.yaml").presets[0].configuration
    #expect(fields.background == Color(red: 1, green: 2, blue: 3) && fields.trim?.color == .white)
    #expect(fields.regions?.map(\.color) == [Color(red: 17, green: 34, blue: 51), Color(red: 9, green: 0, blue: 0)])
    let text = fields.overlays?[0].text
    #expect(
      text?.color == Color(red: 68, green: 85, blue: 102) && text?.boxColor == Color(red: 119, green: 136, blue: 153))
  }

  @Test("replaces a built-in preset of the same name, and is otherwise listed after them")
  func catalog() throws {
    let catalog = PresetCatalog().adding(try PresetFile(yaml: Self.text, name: "p.yaml").presets)
    #expect(catalog.presets.map(\.name) == Preset.builtIn.map(\.name) + ["card"])
    #expect(try catalog.configuration(named: "thumbnail").maxWidth == 9)
  }

  struct BadFile: Sendable, CustomTestStringConvertible {
    var yaml: String
    var line: Int
    var field: String
    var message: String
    var testDescription: String { "\(field): \(message)" }
  }

  private static func body(_ lines: String...) -> String {
    "presets:\n  a:\n    description: x\n" + lines.map { "    \($0)\n" }.joined()
  }

  static let badFiles = [
    BadFile(yaml: body("max_widht: 4"), line: 4, field: "presets.a.max_widht", message: "max_width"),
    BadFile(yaml: body("max_width: wide"), line: 4, field: "presets.a.max_width", message: "whole number"),
    BadFile(yaml: body("max_width: '4'"), line: 4, field: "presets.a.max_width", message: "whole number"),
    BadFile(yaml: body("max_width: -4"), line: 4, field: "presets.a.max_width", message: "whole number"),
    BadFile(yaml: body("max_width: 5000000000"), line: 4, field: "presets.a.max_width", message: "4294967295"),
    BadFile(yaml: body("max_width: 70000"), line: 4, field: "presets.a.max_width", message: "65500"),
    BadFile(yaml: body("max_width:"), line: 4, field: "presets.a.max_width", message: "whole number"),
    BadFile(
      yaml: body("", "compression_quality: 2"), line: 5, field: "presets.a.compression_quality", message: "0 and 1"),
    BadFile(yaml: body("compression_quality: .nan"), line: 4, field: "presets.a.compression_quality", message: "nan"),
    BadFile(yaml: body("allow_upscale: 1"), line: 4, field: "presets.a.allow_upscale", message: "true or false"),
    BadFile(
      yaml: body("preferred_format: bmp"), line: 4, field: "presets.a.preferred_format", message: "original, jpeg"),
    BadFile(yaml: body("resize_mode: stretch"), line: 4, field: "presets.a.resize_mode", message: "max_height"),
    BadFile(yaml: body("background: white"), line: 4, field: "presets.a.background", message: "mapping"),
    BadFile(yaml: body("background: #ffffff"), line: 4, field: "presets.a.background", message: "in quotes"),
    BadFile(
      yaml: body("background:", "  red: 300"), line: 5, field: "presets.a.background.red", message: "255"),
    BadFile(yaml: body("filters: sepia"), line: 4, field: "presets.a.filters", message: "list"),
    BadFile(
      yaml: body("filters:", "- name: sepia", "- name: sepias"), line: 6, field: "presets.a.filters[1].name",
      message: "grayscale"),
    BadFile(
      yaml: body("filters:", "- name: blur", "  parameters:", "    radius: 1", "    radios: 1"), line: 8,
      field: "presets.a.filters[0].parameters[\"radios\"]", message: "radius"),
    BadFile(
      yaml: body("filters:", "- name: blur", "  parameters: {radius: 1000}"), line: 6,
      field: "presets.a.filters[0].parameters[\"radius\"]", message: "50"),
    BadFile(yaml: "preset: {}", line: 1, field: "preset", message: "presets"),
    BadFile(yaml: "", line: 1, field: "", message: "empty"),
    BadFile(yaml: "{}", line: 1, field: "presets", message: "missing"),
    BadFile(
      yaml: "presets:\n  a:\n    frame_index: 1.5", line: 3, field: "presets.a.frame_index",
      message: "between -2147483648 and 2147483647"),
    BadFile(yaml: "presets: [1]", line: 1, field: "presets", message: "mapping"),
    BadFile(yaml: "presets:\n  a: {}\n  b: {}\n  a: {}", line: 2, field: "", message: "twice"),
    BadFile(yaml: "presets:\n  a: [", line: 3, field: "", message: "node"),
    BadFile(yaml: "presets: {'': {}}", line: 1, field: "presets.", message: "64 bytes"),
  ]

  @Test("names the line and the field of an error", arguments: badFiles)
  func refused(file: BadFile) {
    let error = #expect(throws: PresetFileError.self) { try PresetFile(yaml: file.yaml, name: "p.yaml") }
    #expect(error?.line == file.line, "\(error?.description ?? "")")
    #expect(error?.field == file.field)
    #expect(error?.message.contains(file.message) == true, "\(error?.message ?? "")")
    #expect(error?.description.hasPrefix("p.yaml:\(file.line): ") == true)
  }

  /// Returns a valid value for each type of the contract's fields.
  private static func sample(_ field: ContractSchema.Field, schema: ContractSchema) -> String {
    switch field.type {
    case .message where schema.isMap(field): "{}"
    case .message:
      "{"
        + schema.message(field.typeName).field
        // The scale of an overlay excludes its width and height, and its text its image.
        .filter { !(field.name == "overlays" && ["scale", "text"].contains($0.name)) }
        .map { field in
          let value = field.name == "name" ? "sepia" : sample(field, schema: schema)
          return "\(field.name): \(field.label == .repeated && !schema.isMap(field) ? "[\(value)]" : value)"
        }
        .joined(separator: ", ") + "}"
    case .enum: schema.choices(of: field.typeName)[0].name
    case .bool: "true"
    default:
      [
        "rotation": "90", "target_similarity": "60", "palette_colors": "2", "bit_depth": "8", "accept": "webp",
      ][field.name] ?? "1"
    }
  }

  @Test("every field of the contract can be set, and is kept")
  func everyField() throws {
    let schema = ContractSchema.shared
    let fields = schema.message(".imageworker.v1.ProcessingConfiguration").field
    #expect(fields.count >= 17)
    for field in fields {
      let sample = Self.sample(field, schema: schema)
      let value = field.label == .repeated ? "[\(sample)]" : sample
      let yaml = Self.body("\(field.name): \(value)")
      let preset = try PresetFile(yaml: yaml, name: "p").presets[0]
      let json = try Imageworker_V1_ProcessingConfiguration(preset.configuration).jsonString()
      #expect(json.contains("\"\(field.jsonName)\""), "\(field.name): \(json)")
    }
  }

  @Test("texts can be overlays of presets", .enabled(if: TextOverlay.isSupported))
  func texts() throws {
    let fields = "text: a, font: Sans Bold, relative_size: 0.1, outline_width: 0.1, alignment: end, box_padding: 1"
    let yaml = Self.body("overlays:", "- text: {\(fields), box_color: {red: 9}, color: {blue: 8}, max_width: 0.5}")
    let preset = try PresetFile(yaml: yaml, name: "p").presets[0]
    let text = try Imageworker_V1_ProcessingConfiguration(preset.configuration).overlays[0].text
    #expect(text.text == "a" && text.font == "Sans Bold" && text.relativeSize == 0.1 && text.outlineWidth == 0.1)
    #expect(text.alignment == .end && text.boxPadding == 1 && text.boxColor.red == 9 && text.color.blue == 8)
    #expect(text.maxWidth == 0.5 && !text.hasSize && !text.hasOutlineColor)
  }

  @Test("ListPresets returns the store's current presets, and requests find them")
  func replaced() async throws {
    try await withWorker { client, environment in
      let file = try PresetFile(yaml: "presets: {tiny: {max_width: 7, preferred_format: png}}", name: "p")
      environment.presetStore.replace(with: PresetCatalog().adding(file.presets))
      let listed = try await client.listPresets(Imageworker_V1_ListPresetsRequest()).presets
      #expect(listed.map(\.name) == Preset.builtIn.map(\.name) + ["tiny"])
      #expect(listed.last?.configuration.maxWidth == 7)
      #expect(try await client.process(Fixture.bytes("photo.png"), preset: "tiny").header?.width == 7)
    }
  }

  @Test("a worker with --only-presets refuses configuration fields in requests, and accepts presets")
  func onlyPresets() async throws {
    try await withWorker(takesOnlyPresets: true) { client, _ in
      let good = Fixture.bytes("photo.png")
      let status = await failure { _ = try await client.process(good, preset: "favicon") { $0.maxWidth = 5 } }
      #expect(status?.code == .invalidArgument && status?.message.contains("only presets") == true)
      #expect(status?.details.compactMap(\.badRequest).first?.violations.first?.field == "configuration")
      let items = try await client.batch([.start("a", image: good) { $0.maxWidth = 5 }])
      #expect(items["a"]?.errors.first?.message.contains("only presets") == true)
      #expect(try await client.process(good, preset: "favicon").header?.width == 64)
    }
  }
}
