internal import ImageCodecs

/// A condition of an image, its configuration or its result that does not prevent the result.
///
/// It is created where the condition is found, or comes from another process or a cache. `Errors.md` lists the codes
/// and their parameters.
package struct Warning: Sendable, Hashable, Encodable {
  /// The kind of a warning, as the contract names it.
  package enum Code: String, Sendable, Hashable, CaseIterable, Encodable {
    case exifIgnored = "EXIF_IGNORED"
    case firstImageOnly = "FIRST_IMAGE_ONLY"
    case framesDropped = "FRAMES_DROPPED"
    case damageRepaired = "DAMAGE_REPAIRED"
    case damageTolerated = "DAMAGE_TOLERATED"
    case orientationIgnored = "ORIENTATION_IGNORED"
    case endAdded = "END_ADDED"
    case truncated = "TRUNCATED"
    case profileIgnored = "PROFILE_IGNORED"
    case damaged = "DAMAGED"
    case scaleFactorIgnored = "SCALE_FACTOR_IGNORED"
    case targetSimilarityIgnored = "TARGET_SIMILARITY_IGNORED"
    case targetSimilarityMissed = "TARGET_SIMILARITY_MISSED"
    case sizeReduced = "SIZE_REDUCED"
    case qualityReduced = "QUALITY_REDUCED"
    case largerThanImage = "LARGER_THAN_IMAGE"
    case damageUnchecked = "DAMAGE_UNCHECKED"
    case neverLargerIgnored = "NEVER_LARGER_IGNORED"
    case formatChanged = "FORMAT_CHANGED"
    case credentialsRemoved = "CREDENTIALS_REMOVED"
    case colorSpaceChanged = "COLOR_SPACE_CHANGED"
    case trimIgnored = "TRIM_IGNORED"
    case bitDepthReduced = "BIT_DEPTH_REDUCED"
    case facesNotFound = "FACES_NOT_FOUND"
    case facesCut = "FACES_CUT"
    case gainMapRemoved = "GAIN_MAP_REMOVED"
  }

  /// The kind of warning; `nil` for one that another version of the worker stored.
  package var code: Code?
  /// A description in one sentence.
  package var message: String
  /// The values in the message, by name.
  package var parameters: [String: String]

  package init(_ code: Code?, _ message: String, _ parameters: [String: String] = [:]) {
    self.code = code
    self.message = message
    self.parameters = parameters
  }
}

extension Warning {
  /// The EXIF data is damaged.
  package static let brokenEXIF = Warning(.exifIgnored, "the EXIF data is damaged and was ignored")
  /// The file contains further images that a viewer would show.
  package static let firstImageOnly = Warning(
    .firstImageOnly, "the file contains several images; only the first was decoded")
  /// The result has fewer frames than the animation.
  package static func droppedFrames(_ count: Int, isMinimum: Bool) -> Warning {
    Warning(
      .framesDropped,
      "the result lacks \(isMinimum ? "at least " : "")\(count) of the animation's frames; to keep them, leave "
        + "frame_index unset, set max_frames, and preferred_format to one of \(Self.animationFormats)",
      ["frames": "\(count)"])
  }
  /// The decoder repaired or skipped damaged parts.
  package static let repairedDamage = Warning(
    .damageRepaired, "the file is damaged; the decoder repaired or skipped the damaged parts")
  /// Damaged parts cost no row, which the configuration tolerates.
  package static let damagedWithoutLoss = Warning(
    .damageTolerated,
    "the file is damaged, which was tolerated; all of it was decoded, but pixels may be wrong")
  /// The EXIF orientation follows the image data.
  package static let lateOrientation = Warning(
    .orientationIgnored, "the EXIF orientation was ignored, because it follows the image data")
  /// A file that was passed through lacked its end marker.
  package static let missingEnd = Warning(.endAdded, "the end of the file was missing; the result has one")
  /// The end of the file is missing, which the configuration tolerates.
  package static let truncated = Warning(.truncated, "the file is truncated; the missing part of the image is gray")
  /// The color profile cannot be used.
  package static let unusableProfile = Warning(
    .profileIgnored,
    ColorConversion.isSupported
      ? "the color profile is damaged or does not match the image; its colors were treated as sRGB"
      : "colors were treated as sRGB: this build lacks littlecms, which converts those of the profile")
  /// The image is damaged from a row on, which the configuration tolerates.
  package static func damaged(row: Int, height: Int) -> Warning {
    Warning(
      .damaged, "the image is damaged from row \(row) of \(height) on; the undecodable part is gray",
      ["row": "\(row)", "height": "\(height)"])
  }
  /// `scale_factor` is set without bounds that it could scale.
  package static let ignoredScaleFactor = Warning(
    .scaleFactorIgnored, "scale_factor needs max_width or max_height; set one of them")
  /// `target_similarity` is set for a result that is too small to be measured.
  package static func ignoredTargetSimilarity(_ size: PixelSize) -> Warning {
    Warning(
      .targetSimilarityIgnored, "target_similarity is ignored for a result of \(size), below 8x8",
      ["width": "\(size.width)", "height": "\(size.height)"])
  }
  /// `target_similarity` was not reached because of another field.
  package static func missedTargetSimilarity(_ similarity: Double, becauseOf field: String) -> Warning {
    Warning(
      .targetSimilarityMissed, "the similarity is \(similarity), below target_similarity, because of \(field)",
      ["similarity": "\(similarity)", "field": field])
  }
  /// `max_bytes` required a smaller size.
  package static func reducedSize(_ size: PixelSize, planned: PixelSize) -> Warning {
    Warning(
      .sizeReduced, "the result is \(size) instead of \(planned), to fit max_bytes",
      [
        "width": "\(size.width)", "height": "\(size.height)", "planned_width": "\(planned.width)",
        "planned_height": "\(planned.height)",
      ])
  }
  /// `never_larger` required a lower quality; the quality of a lossless result is `nil`.
  package static func reducedQuality(_ quality: Double?, requested: Double?, imageByteCount: UInt64) -> Warning {
    Warning(
      .qualityReduced,
      "the quality is \(Self.text(quality)) instead of \(Self.text(requested)), as never_larger limits the "
        + "result to the image's \(imageByteCount) bytes",
      [
        "quality": Self.text(quality), "requested_quality": Self.text(requested),
        "image_bytes": "\(imageByteCount)",
      ])
  }
  /// The result has more bytes than its image; `note` ends the sentence with the reason or the remedy.
  package static func largerThanImage(byteCount: UInt64, imageByteCount: UInt64, note: String) -> Warning {
    Warning(
      .largerThanImage, "the result has \(byteCount) bytes, more than the image's \(imageByteCount)\(note)",
      ["bytes": "\(byteCount)", "image_bytes": "\(imageByteCount)"])
  }
  /// There is not enough memory to decode an image that is passed through.
  package static let uncheckedDamage = Warning(
    .damageUnchecked,
    "the image was not checked for damage, as decoding it needs more than image_memory_limit")
  /// There is not enough memory for `never_larger`.
  package static let ignoredNeverLarger = Warning(
    .neverLargerIgnored, "never_larger is ignored, as it needs more than image_memory_limit")
  /// There is not enough memory for the encoder of the planned format.
  package static func changedFormat(_ format: String, planned: String) -> Warning {
    let reason =
      planned == OutputFormat.auto.rawValue
      ? ", because choosing a format" : " instead of \(planned), whose encoder"
    return Warning(
      .formatChanged, "the result is \(format)\(reason) needs more memory than image_memory_limit",
      ["format": format, "planned_format": planned])
  }
  /// The content credentials of the image do not hold for the result.
  package static let removedCredentials = Warning(
    .credentialsRemoved, "the content credentials (C2PA) were removed, as they do not hold for the result")
  /// `trim` is set for an image that is all border.
  package static let ignoredTrim = Warning(
    .trimIgnored, "trim is ignored, as the whole image is border; lower trim.threshold or set trim.color")
  /// No face was found for a field.
  package static func missingFaces(field: String) -> Warning {
    Warning(
      .facesNotFound,
      field == "gravity"
        ? "no face was found in the part to choose from; gravity FACES keeps what attracts attention, as SMART does"
        : "no face was found; regions of FACES hide nothing", ["field": field])
  }
  /// `gravity` keeps only some of the faces whole.
  package static func cutFaces(_ count: Int, kept: Int) -> Warning {
    Warning(
      .facesCut, "\(kept) of \(count) faces are whole in the result, as not all of them fit",
      ["faces": "\(count)", "kept": "\(kept)"])
  }
  /// Colors became sRGB although `color_space` asks for another space.
  package static func changedColorSpace(requested: ColorSpacePolicy, because obstacle: ColorObstacle) -> Warning {
    Warning(
      .colorSpaceChanged, "the colors are sRGB instead of color_space \(requested.rawValue): \(obstacle.reason)",
      ["color_space": requested.rawValue, "cause": obstacle.rawValue])
  }
  /// The result has 8 bits per sample although `bit_depth` asks for more.
  package static func reducedBitDepth(because obstacle: DepthObstacle) -> Warning {
    Warning(
      .bitDepthReduced, "the result has 8 bits per sample instead of bit_depth: \(obstacle.reason)",
      ["cause": obstacle.rawValue])
  }
  /// The gain map of the image was removed although `gain_map` asks to keep it.
  package static func removedGainMap(because obstacle: GainMapObstacle) -> Warning {
    Warning(
      .gainMapRemoved, "the HDR gain map was removed: \(obstacle.reason)", ["cause": obstacle.rawValue])
  }

  private static let animationFormats = ImageFormat.allCases.filter(\.storesFrames).map(\.rawValue)
    .joined(separator: ", ")

  private static func text(_ quality: Double?) -> String { quality.map { "\($0)" } ?? "lossless" }

  /// Creates the warning of a decoder.
  /// - Parameters:
  ///   - warning: The warning.
  ///   - header: The header of the image, as far as it is known.
  ///   - frameCount: The number of frames that were decoded.
  init(_ warning: ImageHeader.Warning, of header: ImageHeader, frameCount: Int = 1) {
    guard warning == .firstFrameOnly, header.hasFrames else {
      self.init(warning)
      return
    }
    let isKnown = header.frameCount > frameCount
    self = .droppedFrames(isKnown ? header.frameCount - frameCount : 1, isMinimum: !isKnown)
  }

  init(_ warning: ImageHeader.Warning) {
    switch warning {
    case .brokenEXIF: self = .brokenEXIF
    case .firstFrameOnly: self = .firstImageOnly
    case .damaged: self = .repairedDamage
    case .damagedWithoutLoss: self = .damagedWithoutLoss
    case .lateOrientation: self = .lateOrientation
    case .missingEnd: self = .missingEnd
    case .truncated: self = .truncated
    case .unusableProfile: self = .unusableProfile
    }
  }
}

extension ColorObstacle {
  fileprivate var reason: String {
    switch self {
    case .cmyk: "the image is in CMYK, and results cannot be"
    case .hdr:
      "the image is HDR (PQ or HLG), which needs a PNG, AVIF or JPEG XL with a bit_depth above 8, the primaries of "
        + "BT.709, BT.2020 or P3, and, if it is gray, neither pad nor filters"
    case .gray: "the profile is for gray, and the result is in color"
    case .format: "the format of the result contains no profile"
    }
  }
}

extension DepthObstacle {
  fileprivate var reason: String {
    switch self {
    case .filters: "filters and sharpen_reduced compute with 8 bits"
    case .overlays: "overlays are drawn with 8 bits"
    case .palette: "the colors of a palette have 8 bits"
    case .search: "max_bytes, target_similarity, never_larger and AUTO compare results of 8 bits"
    case .animation: "animations have 8 bits"
    case .format: "this worker was built without libaom, which the format needs"
    }
  }
}
