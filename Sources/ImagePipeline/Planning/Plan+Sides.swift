internal import ImageCodecs

/// Limits on the sides of images in the stages.
extension Plan {
  /// The maximum side of the image and of the result in pixels, given by how the resampler counts samples.
  static let maxSide = 1 << 26
  /// The maximum side in pixels of a result to which area filters are applied.
  static let maxFilteredSide = 1 << 20

  /// Checks that every stage can be created for these sizes.
  /// - Throws: `limitExceeded` with the name of the limit.
  static func checkSides(stored: PixelSize, framing: Framing, filters: FilterChain) throws(PipelineError) {
    try check(stored, limit: maxSide, name: "max_side")
    try check(framing.imageSize, limit: maxSide, name: "max_side")
    if filters.hasAreas { try check(framing.imageSize, limit: maxFilteredSide, name: "max_filtered_side") }
  }

  private static func check(_ size: PixelSize, limit: Int, name: String) throws(PipelineError) {
    let side = max(size.width, size.height)
    guard side <= limit else {
      throw PipelineError(exceeding: name, limit: UInt64(limit), value: UInt64(side), unit: "pixels per side")
    }
  }
}
