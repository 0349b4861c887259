/// The bounds of a result, and the fields that change them.
extension ProcessingConfiguration {
  /// The range of the sides of a result in whole pixels, as the framing uses it.
  struct Bounds: Sendable, Hashable {
    var maxWidth: Int?
    var maxHeight: Int?
    var minWidth: Int?
    var minHeight: Int?
  }

  /// The bounds, multiplied by `zoom`, divided by `scaleFactor`, and rounded down to at least 1.
  ///
  /// With `extendAspectRatio` the maximum is that of the extended result: the largest with this ratio within the bounds.
  var bounds: Bounds {
    let (multiplier, divisor) = (zoom ?? 1, scaleFactor ?? 1)
    // A result such as 100 * 0.29 or 121 / 1.1 is slightly below the whole number that it stands for.
    let slack = 1e-9
    func bound(_ value: Int?) -> Int? { value.map { max(1, Int(Double($0) * multiplier / divisor + slack)) } }
    var bounds = Bounds(
      maxWidth: bound(maxWidth), maxHeight: bound(maxHeight), minWidth: bound(minWidth), minHeight: bound(minHeight))
    guard let ratio = extendAspectRatio, maxWidth != nil || maxHeight != nil else { return bounds }
    let (width, height) = (bounds.maxWidth, bounds.maxHeight)
    func side(_ length: Double) -> Int { max(1, min(Int(length.rounded()), Self.maxBound)) }
    let across = height.map { side(Double($0) * ratio) }
    let down = width.map { side(Double($0) / ratio) }
    bounds.maxWidth = [width, across].compactMap(\.self).min()
    bounds.maxHeight = [height, down].compactMap(\.self).min()
    return bounds
  }

  /// Checks the fields for the size of the result against each other.
  /// - Throws: `invalidField` with the name of a field that contradicts another one.
  func validateBounds() throws(PipelineError) {
    try validateZoom()
    for (name, minimum, maximum) in [("width", minWidth, maxWidth), ("height", minHeight, maxHeight)] {
      guard let minimum else { continue }
      try needFit("min_\(name) \(minimum)", field: "min_\(name)")
      if let maximum, minimum > maximum {
        throw PipelineError(
          .invalidField, "min_\(name) \(minimum) exceeds max_\(name) \(maximum); it must be at most that",
          field: "min_\(name)")
      }
    }
    guard let ratio = extendAspectRatio else { return }
    try needFit("extend_aspect_ratio \(ratio)", field: "extend_aspect_ratio")
    guard !(pad ?? false), minWidth == nil, minHeight == nil else {
      throw PipelineError(
        .invalidField,
        "extend_aspect_ratio \(ratio) cannot be combined with pad, min_width or min_height; leave one of them unset",
        field: "extend_aspect_ratio")
    }
  }

  private func validateZoom() throws(PipelineError) {
    guard let zoom, zoom != 1 else { return }
    let bounds = [
      ("max_width", maxWidth), ("max_height", maxHeight), ("min_width", minWidth), ("min_height", minHeight),
    ].compactMap { name, value in value.map { (name, $0) } }
    guard !bounds.isEmpty else {
      throw PipelineError(
        .invalidField, "zoom \(zoom) needs max_width, max_height, min_width or min_height; set one of them",
        field: "zoom")
    }
    for (name, value) in bounds where Double(value) * zoom / (scaleFactor ?? 1) >= Double(Self.maxBound + 1) {
      throw PipelineError(
        .invalidField, "zoom \(zoom) enlarges \(name) \(value) beyond \(Self.maxBound) pixels; use a smaller one",
        field: "zoom")
    }
  }

  /// Throws an error if the size of the result is given by its bounds alone.
  private func needFit(_ setting: String, field: String) throws(PipelineError) {
    guard let mode = resizeMode, mode != .fit else { return }
    throw PipelineError(
      .invalidField, "\(setting) cannot be combined with resize_mode \(mode.rawValue.uppercased()); use FIT",
      field: field)
  }
}
