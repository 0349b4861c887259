internal import ArgumentParser
internal import ImagePipeline

/// `image-worker presets`.
struct Presets: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List the presets with their bounds, quality and format.",
    discussion: """
      Examples:
        image-worker presets
        image-worker process photo.jpg --preset thumbnail --out small.jpg
      """)

  @Option(
    help: ArgumentHelp("Also list the presets of a YAML file, which may override built-in ones.", valueName: "file"),
    completion: .file())
  var presets: String?

  func run() throws {
    let rows = try PresetSource.catalog(path: presets).presets.map(Self.row)
    let heading = ["preset", "bounds", "bytes", "quality", "format", "description"]
    try FileSystem.printLine(ReadableText.printable(ReadableText.table([heading] + rows)))
  }

  private static func row(_ preset: Preset) -> [String] {
    let fields = preset.configuration
    let bounds: String =
      switch (fields.maxWidth, fields.maxHeight) {
      case (let width?, let height?): "\(width)x\(height)"
      case (let width?, nil): "\(width) wide"
      case (nil, let height?): "\(height) high"
      case (nil, nil): "none"
      }
    return [
      preset.name, bounds, fields.maxBytes.map { "\($0)" } ?? "any", "\(fields.compressionQuality ?? 1)",
      (fields.preferredFormat ?? .original).rawValue, preset.description,
    ]
  }
}
