internal import ImagePipeline

/// A named configuration.
public struct Preset: Sendable, Hashable {
  /// The name.
  public let name: String
  /// A description in one sentence.
  public let summary: String
  /// The fields that the preset sets.
  public let configuration: ProcessingConfiguration

  /// The presets of every worker, in the order in which it lists them.
  public static let builtIn: [Preset] = ImagePipeline.Preset.builtIn.map {
    Preset(
      name: $0.name, summary: $0.description, configuration: ProcessingConfiguration($0.configuration))
  }
}
