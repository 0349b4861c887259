internal import ImageCodecs
internal import ImagePipeline

extension ProcessingConfiguration {
  /// The quality of results whose size or format an option sets, where nothing sets a quality.
  ///
  /// Services that leave out the quality get the best one. A person who makes an image smaller wants a smaller file.
  private static let commandLineQuality = 0.8

  /// These overrides of a preset, with the quality that people get by default.
  func withDefaultQuality(for preset: String, in catalog: PresetCatalog) -> ProcessingConfiguration {
    let isPlain = catalog.presets.first { $0.name == preset } == Preset.builtIn.first { $0.name == Preset.defaultName }
    let isLossless = preferredFormat == .png || webp?.writesLossless ?? false || jxl?.writesLossless ?? false
    let setsFormat = preferredFormat.map { $0 != .original } ?? false
    guard isPlain, compressionQuality == nil, targetSimilarity == nil, !isLossless,
      setsFormat || crop != nil || [maxWidth, maxHeight, minWidth, minHeight].contains(where: { $0 != nil })
    else { return self }
    var overrides = self
    overrides.compressionQuality = Self.commandLineQuality
    return overrides
  }
}
