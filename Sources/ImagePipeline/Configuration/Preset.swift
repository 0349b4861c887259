internal import Fields

/// A named configuration.
package struct Preset: Sendable, Hashable {
  /// The name that requests use.
  package var name: String
  /// A description in one sentence, to help choose a preset.
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
  /// The name of the preset for a request that specifies none.
  package static let defaultName = "default"

  /// The presets that every worker has, in listing order.
  package static let builtIn: [Preset] = [
    Preset(
      name: defaultName, description: "The image unchanged, upright and without metadata.",
      configuration: ProcessingConfiguration(compressionQuality: 1, preferredFormat: .original)),
    jpeg(
      "highDefinition", "Fits in 1920x1080, at full quality unless that is larger than the image.", 1920, 1080,
      quality: 1),
    jpeg("thumbnail", "Fits in 1280x720, at full quality unless that is larger than the image.", 1280, 720, quality: 1),
    jpeg("compressedThumbnail", "Fits in 1280x720, compressed.", 1280, 720, quality: 0.8),
    jpeg("favicon", "Fits in 64x64, at full quality unless that is larger than the image.", 64, 64, quality: 1),
    jpeg("compressedFavicon", "Fits in 64x64, compressed.", 64, 64, quality: 0.8),
    jpeg("preview", "Fits in 300x300, for a quick look.", 300, 300, quality: 0.8),
    jpeg("upload", "Fits in 2000x2000, for sharing.", 2000, 2000, quality: 0.8),
    Preset(
      name: "widget", description: "At most 1024 wide and 1,000,000 bytes, without transparency.",
      configuration: ProcessingConfiguration(
        maxWidth: 1024, compressionQuality: 0.8, preferredFormat: .jpeg, maxBytes: 1_000_000, neverLarger: true)),
  ]

  private static func jpeg(
    _ name: String, _ description: String, _ width: Int, _ height: Int, quality: Double
  ) -> Preset {
    Preset(
      name: name, description: description,
      configuration: ProcessingConfiguration(
        maxWidth: width, maxHeight: height, compressionQuality: quality, preferredFormat: .jpeg, neverLarger: true))
  }
}

/// The presets that requests can specify by name.
package struct PresetCatalog: Sendable {
  /// The presets in listing order; their names are unique.
  package let presets: [Preset]

  package init(_ presets: [Preset] = Preset.builtIn) {
    self.presets = presets
  }

  /// Returns these presets and `others`, which replace presets of the same name.
  package func adding(_ others: [Preset]) -> PresetCatalog {
    let byName = Dictionary(others.map { ($0.name, $0) }) { _, last in last }
    let known = Set(presets.map(\.name))
    return PresetCatalog(presets.map { byName[$0.name] ?? $0 } + others.filter { !known.contains($0.name) })
  }

  /// Returns the configuration of a preset.
  /// - `name`: the name of the preset; empty for `default`.
  /// - Throws: `unknownPreset` with a message that lists the existing names.
  package func configuration(named name: String) throws(PipelineError) -> ProcessingConfiguration {
    let wanted = name.isEmpty ? Preset.defaultName : name
    guard let short = wanted.asName, let preset = presets.first(where: { $0.name == short }) else {
      throw Self.unknown(wanted, names: presets.map(\.name))
    }
    return preset.configuration
  }

  /// Returns the error of a name that is none of `names`, which its message lists.
  package static func unknown(_ name: String, names: [String]) -> PipelineError {
    let text = name.beginning
    return PipelineError(
      .unknownPreset,
      "there is no preset \"\(text)\"; use one of: \(names.joined(separator: ", "))"
        + NearestName.question(text, in: names), field: "preset", of: .request)
  }
}
