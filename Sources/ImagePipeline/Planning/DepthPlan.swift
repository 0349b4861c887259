internal import ImageCodecs

/// The reason why a result has no more than 8 bits per sample.
package enum DepthObstacle: String, Sendable, Hashable {
  /// Filters and `sharpen_reduced` compute with 8 bits.
  case filters
  /// Overlays are drawn with 8 bits.
  case overlays
  /// A palette has colors of 8 bits.
  case palette
  /// `max_bytes`, `target_similarity`, `never_larger` and `AUTO` compare results of 8 bits.
  case search
  /// Animations have 8 bits.
  case animation
  /// This worker was built without libaom, so its AVIF files have 8 bits.
  case format
}

/// The bits per sample of the rows of a rendition.
struct DepthPlan: Sendable, Hashable {
  /// Whether rows have 16 bits up to the encoder.
  let isDeep: Bool
  /// The reason why the result lacks the bits that were asked for; `nil` if it has them, or the image has no more than 8.
  let obstacle: DepthObstacle?

  /// - `formats`: the formats that the result can have.
  init(
    _ header: ImageHeader, configuration: ProcessingConfiguration, formats: [ImageFormat], _ filters: FilterChain,
    _ frames: FrameSelection
  ) {
    guard header.is16Bit, formats.contains(where: { Self.bitDepth(of: $0, configuration) > 8 }) else {
      (isDeep, obstacle) = (false, nil)
      return
    }
    let hasPalette = formats[0] == .png && configuration.png?.paletteColors ?? 0 > 0
    let isSearched =
      formats.count > 1 || configuration.maxBytes != nil || configuration.targetSimilarity != nil
      || configuration.neverLarger ?? false
    obstacle =
      !filters.isEmpty
      ? .filters
      : !(configuration.overlays ?? []).isEmpty
        ? .overlays
        : frames.isAnimation
          ? .animation : isSearched ? .search : hasPalette ? .palette : formats[0].takes(.rgb16) ? nil : .format
    isDeep = obstacle == nil
  }

  /// Returns the bits per sample that results in a format are asked to have.
  private static func bitDepth(of format: ImageFormat, _ configuration: ProcessingConfiguration) -> Int {
    switch format.traits.output?.optionGroup {
    case .png: configuration.png?.bitDepth ?? 8
    case .jxl: configuration.jxl?.bitDepth ?? 8
    case .avif: configuration.avif?.bitDepth ?? 8
    case .jpeg, .webp, .tensor, nil: 8
    }
  }
}
