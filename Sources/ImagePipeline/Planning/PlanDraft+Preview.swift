internal import ImageCodecs

extension PlanDraft {
  /// Returns the draft of a preview: it shows the same as this draft's result, but is small and fast to produce.
  /// - `maxSide`: the maximum side of the preview in pixels.
  func preview(of header: ImageHeader, maxSide: Int) -> PlanDraft {
    let longest = max(framing.canvasSize.width, framing.canvasSize.height)
    let factor = min(1, Double(maxSide) / Double(longest))
    let format = Plan.formats(of: header, configuration, size: framing.canvasSize)[0]
    var preview = configuration
    preview.compressionQuality = 0.7
    preview.preferredFormat = header.hasAlpha && format.takes(.rgba8) ? .png : .jpeg
    preview.metadata = .strip
    if !(format.traits.output?.containsProfiles ?? false) { preview.colorSpace = .srgb }
    (preview.metadataTitle, preview.metadataCopyright, preview.metadataDescription) = (nil, nil, nil)
    preview.alwaysEncode = true
    let filters = configuration.sharpening(reduction: framing.reduction) + (configuration.filters ?? [])
    preview.filters = filters.suffix(Filter.maxChainCount).compactMap { $0.scaled(by: factor) }
    preview.sharpenReduced = nil
    (preview.facts, preview.gainMap) = (nil, nil)
    // These apply only to the result itself. The bounds are already part of the framing.
    (preview.zoom, preview.minWidth, preview.minHeight, preview.extendAspectRatio) = (nil, nil, nil, nil)
    (preview.scaleFactor, preview.maxBytes, preview.allowSmallerDimensions) = (nil, nil, nil)
    (preview.targetSimilarity, preview.neverLarger, preview.allowLowerFrameRate) = (nil, nil, nil)
    (preview.exactResize, preview.resizeInLinearLight) = (nil, nil)
    (preview.maxFrames, preview.frameIndex) = (nil, nil)  // the frame is selected
    (preview.jpeg, preview.png, preview.webp, preview.avif, preview.jxl) = (nil, nil, nil, nil, nil)
    preview.tensor = nil
    return PlanDraft(
      configuration: preview, orientation: orientation, framing: framing.scaled(by: factor), isPreview: true,
      overlayFactor: factor, faces: faces)
  }
}

extension Filter {
  /// Returns a filter that has the same visible effect on a result scaled by `factor`, at most 1.
  ///
  /// It is `nil` if a parameter would fall below its minimum, as the filter can then be omitted. Lengths that must be
  /// whole numbers are rounded.
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
