internal import ImageCodecs

extension PlanDraft {
  /// The longest side of a preview in pixels.
  static let maxPreviewSide = 300

  /// What shows the same as this draft's result, and is small and soon there.
  func preview(of header: ImageHeader) -> PlanDraft {
    let longest = max(framing.canvasSize.width, framing.canvasSize.height)
    let factor = min(1, Double(Self.maxPreviewSide) / Double(longest))
    let format = Plan.format(header: header, configuration: configuration)
    var preview = configuration
    preview.compressionQuality = 0.7
    preview.preferredFormat = header.hasAlpha && format.takes(.rgba8) ? .png : .jpeg
    preview.metadata = .strip
    preview.alwaysEncode = true
    preview.filters = configuration.filters?.compactMap { $0.scaled(by: factor) }
    // Meant for the result alone. The bounds are part of the framing.
    (preview.scaleFactor, preview.maxBytes, preview.allowSmallerDimensions) = (nil, nil, nil)
    (preview.jpeg, preview.png, preview.webp) = (nil, nil, nil)
    return PlanDraft(
      preview, orientation: orientation, framing: framing.scaled(by: factor), isPreview: true)
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
