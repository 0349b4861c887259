internal import Fields

/// A named configuration.
package struct Preset: Sendable, Hashable {
  /// The name that requests use.
  package var name: String
  /// One sentence for whoever chooses among presets.
  package var description: String
  /// The fields that the preset sets.
  package var configuration: ProcessingConfiguration

  package init(name: String, description: String, configuration: ProcessingConfiguration) {
    self.name = name
    self.description = description
    self.configuration = configuration
  }
}

extension Preset {
  /// The preset of a request that names none.
  package static let defaultName = "default"

  /// The presets every worker has, in the order in which they are listed.
  package static let builtIn: [Preset] = [
    Preset(
      name: defaultName, description: "The image unchanged, upright and without metadata.",
      configuration: ProcessingConfiguration(compressionQuality: 1, preferredFormat: .original)),
    jpeg("highDefinition", "Fits in 1920x1080 at full quality.", 1920, 1080, quality: 1),
    jpeg("thumbnail", "Fits in 1280x720 at full quality.", 1280, 720, quality: 1),
    jpeg("compressedThumbnail", "Fits in 1280x720, compressed.", 1280, 720, quality: 0.8),
    jpeg("favicon", "Fits in 64x64 at full quality.", 64, 64, quality: 1),
    jpeg("compressedFavicon", "Fits in 64x64, compressed.", 64, 64, quality: 0.8),
    jpeg("preview", "Fits in 300x300, for a quick look.", 300, 300, quality: 0.8),
    jpeg("upload", "Fits in 2000x2000, for sharing.", 2000, 2000, quality: 0.8),
    Preset(
      name: "widget", description: "At most 1024 wide and 1,000,000 bytes, without transparency.",
      configuration: ProcessingConfiguration(
        maxWidth: 1024, compressionQuality: 0.8, preferredFormat: .jpeg, maxBytes: 1_000_000)),
  ]

  private static func jpeg(
    _ name: String, _ description: String, _ width: Int, _ height: Int, quality: Double
  ) -> Preset {
    Preset(
      name: name, description: description,
      configuration: ProcessingConfiguration(
        maxWidth: width, maxHeight: height, compressionQuality: quality, preferredFormat: .jpeg))
  }
}

/// The presets that requests can name.
package struct PresetCatalog: Sendable {
  /// In listing order; names are unique.
  package let presets: [Preset]

  package init(_ presets: [Preset] = Preset.builtIn) {
    self.presets = presets
  }

  /// These presets and `others`, which take the place of those that have their names.
  package func adding(_ others: [Preset]) -> PresetCatalog {
    let byName = Dictionary(others.map { ($0.name, $0) }) { _, last in last }
    let known = Set(presets.map(\.name))
    return PresetCatalog(presets.map { byName[$0.name] ?? $0 } + others.filter { !known.contains($0.name) })
  }

  /// The preset's configuration with the overrides in place.
  /// - `name`: empty for `default`.
  /// - Throws: `unknownPreset` listing the names there are.
  package func configuration(
    named name: String, overrides: ProcessingConfiguration = ProcessingConfiguration()
  ) throws(PipelineError) -> ProcessingConfiguration {
    let wanted = name.isEmpty ? Preset.defaultName : name
    guard let preset = presets.first(where: { $0.name == wanted }) else {
      let names = presets.map(\.name).joined(separator: ", ")
      throw PipelineError(
        .unknownPreset, "there is no preset \"\(wanted.prefix(64))\"; use one of: \(names)", field: "preset")
    }
    return preset.configuration.overridden(by: overrides)
  }
}
