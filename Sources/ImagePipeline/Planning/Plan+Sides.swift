internal import ImageCodecs

/// How long the sides of what passes through the stages may be.
extension Plan {
  /// Of the image and of the result, as the resampler counts samples.
  static let maxSide = 1 << 26
  /// Of a result that filters of areas are applied to.
  static let maxFilteredSide = 1 << 20

  /// - Throws: `limitExceeded`, which names the limit, where a stage could not be made.
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
