internal import ImageCodecs

/// The reason why a result lacks the gain map of its image although it was to be kept.
package enum GainMapObstacle: String, Error, Hashable {
  /// The result is not JPEG, or its rows decide.
  case format
  /// Filters change the image, and a map does not follow them.
  case filters
  /// Overlays cover the image.
  case overlays
  /// A map would show what regions hide.
  case regions
  /// The image and its map together exceed the size limit.
  case maxBytes = "max_bytes"
  /// The metadata that is kept leaves no room for the directory of the map.
  case metadata
  /// There is not enough memory for the map.
  case memory
  /// The map is damaged or incomplete.
  case damage
  /// The file does not state how much the map brightens.
  case headroom

  /// Returns the obstacle that is known before the map is read; `nil` without one.
  init?(_ configuration: ProcessingConfiguration, plan: Plan) {
    if plan.encoder.format != .jpeg || plan.byteLimit?.choice != nil {
      self = .format
    } else if configuration.hidesPixels {
      self = .regions
    } else if plan.hasOverlays {
      self = .overlays
    } else if (configuration.filters ?? []).contains(where: { $0.name != FilterKind.sharpen.rawValue }) {
      self = .filters
    } else {
      return nil
    }
  }

  /// The end of a sentence about the removal of the map.
  var reason: String {
    switch self {
    case .format: "the result is not known to be JPEG"
    case .filters: "it does not follow the filters"
    case .overlays: "it would change the overlays"
    case .regions: "it would show what the regions hide"
    case .maxBytes: "the result would exceed max_bytes"
    case .metadata: "the XMP that is kept leaves no room for the directory of the map"
    case .memory: "it needs more than image_memory_limit"
    case .damage: "it is damaged, incomplete or larger than its image"
    case .headroom: "its file states no valid headroom"
    }
  }

  /// Returns the obstacle that an error of the map is to the result.
  /// - Throws: The error, if it ends the whole image.
  init(_ error: PipelineError) throws(PipelineError) {
    switch error.code {
    case .cancelled, .overloaded, .internalDefect: throw error
    case .limitExceeded where error.limit?.name == "max_cpu_seconds_per_image": throw error
    case .limitExceeded where error.limit?.name == "image_memory_limit": self = .memory
    case .invalidField, .unservedField, .unknownPreset, .emptyImage, .unknownFormat, .unsupportedImage, .corruptImage,
      .truncatedImage, .limitExceeded, .uploadStalled, .codecCrashed, .codecStopped:
      self = .damage
    }
  }
}
