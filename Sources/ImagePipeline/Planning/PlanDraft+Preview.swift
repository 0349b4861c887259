internal import ImageCodecs

extension PlanDraft {
  /// The longest side of a preview in pixels.
  static let longestPreviewSide = 300

  /// What shows the same as this draft's result, and is small and soon there.
  func preview(of header: ImageHeader) -> PlanDraft {
    let longest = max(framing.canvasSize.width, framing.canvasSize.height)
    let factor = min(1, Double(Self.longestPreviewSide) / Double(longest))
    let format = Plan.format(header: header, configuration: configuration)
    return PlanDraft(
      ProcessingConfiguration(
        compressionQuality: 0.7, preferredFormat: header.hasAlpha && format.takes(.rgba8) ? .png : .jpeg,
        background: configuration.background, metadata: .strip,
        tolerateTruncation: configuration.tolerateTruncation, alwaysEncode: true,
        tolerateDamage: configuration.tolerateDamage,
        filters: configuration.filters?.compactMap { $0.scaled(by: factor) }),
      orientation: orientation, framing: framing.scaled(by: factor), isPreview: true)
  }
}

extension Filter {
  /// What does to a result that is `factor` as large, at most 1, what this filter does to the result itself.
  ///
  /// `nil` where that is less than what the filter can do at least. Lengths that must be whole are rounded.
  func scaled(by factor: Double) -> Filter? {
    var scaled = self
    for parameter in FilterKind(rawValue: name)?.parameters ?? [] where parameter.isLength {
      let length = (parameters[parameter.name] ?? parameter.defaultValue) * factor
      let value = parameter.isWhole ? max(parameter.range.lowerBound, length.rounded()) : length
      guard value >= parameter.range.lowerBound else { return nil }
      scaled.parameters[parameter.name] = value
    }
    return scaled
  }
}
