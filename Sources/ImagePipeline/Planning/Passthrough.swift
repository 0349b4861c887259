internal import ImageCodecs

/// The way in which the result is produced from the image's file.
package enum Passthrough: String, Sendable, Hashable {
  /// The image is decoded, processed by the stages, and encoded.
  case decoded
  /// The file is copied without its metadata.
  case copied
  /// As `copied`, and the blocks of a JPEG are also rotated or flipped without loss.
  case rotated
  /// The coefficients of a JPEG are coded as a lossless JPEG XL, from which the file without its metadata can be
  /// reconstructed.
  case recompressed
  /// The JPEG that a JPEG XL was recompressed from is reconstructed, and copied without its metadata.
  case reconstructed
  /// As `reconstructed`, with its metadata: the file itself, byte by byte.
  case restored
}

extension Passthrough {
  /// The divisor of an image's memory limit that gives the maximum for a lossless transform, which buffers the
  /// coefficients twice.
  private static let rotationShare: UInt64 = 4

  /// Chooses the cheapest way whose result is no worse and, as far as the header indicates, no larger than after
  /// decoding.
  ///
  /// An image is passed through if nothing in the configuration changes its pixels, and its compression quality does
  /// not exceed the requested one. The quality of a JPEG is determined from its quantisation tables and chroma, that of
  /// a lossy WebP from its quantizers.
  /// - Parameters:
  ///   - plan: The plan for the same image and configuration.
  ///   - header: The header of the image.
  ///   - configuration: The requested configuration.
  ///   - survey: The transforms that are possible without decoding.
  ///   - byteCount: The size of the whole file in bytes; `nil` if it is not known.
  init(
    plan: Plan, header: ImageHeader, configuration: ProcessingConfiguration, survey: Rewriter.Survey, byteCount: UInt64?
  ) {
    // A copy cannot be completed or repaired as far as rows can.
    let isTolerant = configuration.tolerateTruncation ?? false || configuration.tolerateDamage ?? false
    // The search for a similarity finds the smallest file, which a copy is not.
    let isAsked = !(configuration.alwaysEncode ?? false) && !isTolerant && configuration.targetSimilarity == nil
    // Copyright metadata that follows the image data is not known yet, and a rewritten file has no place for it.
    let hasNoTrailingMetadata =
      (configuration.metadata ?? .strip) == .strip || !header.format.traits.hasTrailingMetadata
    guard isAsked, hasNoTrailingMetadata, survey.canCopy || survey.canReconstruct, plan.keepsPixels,
      plan.byteLimit?.choice == nil, plan.color.target == nil, Self.isPlain(header, plan.frames)
    else {
      self = .decoded
      return
    }
    if survey.canReconstruct {
      self = Self.reconstruction(plan, configuration, survey)
      return
    }
    let isPure = plan.encoder.metadata.byteCount == plan.encoder.metadata.profile.count
    if survey.canRecompress, plan.encoder.isLosslessJXL, plan.orientation == .up, isPure, configuration.maxBytes == nil
    {
      self = .recompressed
      return
    }
    guard plan.encoder.format == header.format, !plan.encoder.asksForCoding,
      Self.isCoarse(survey, beside: plan.encoder)
    else {
      self = .decoded
      return
    }
    if plan.orientation == .up {
      // Rewriting inserts a JFIF segment, a WebP container, or the copyright metadata.
      let maximum = byteCount.map { $0 + UInt64(plan.encoder.metadata.maxStoredByteCount) + 64 }
      self = configuration.maxBytes.map { limit in maximum.map { $0 <= limit } ?? false } ?? true ? .copied : .decoded
    } else {
      self = survey.rotations.contains(plan.orientation) && configuration.maxBytes == nil ? .rotated : .decoded
    }
  }

  /// Returns the way in which a JPEG is reconstructed, or `decoded`.
  ///
  /// It is not known how large it is, and how coarse.
  private static func reconstruction(
    _ plan: Plan, _ configuration: ProcessingConfiguration, _ survey: Rewriter.Survey
  ) -> Passthrough {
    guard configuration.allowsReconstruction, plan.encoder.format == .jpeg, plan.orientation == .up,
      !plan.encoder.asksForCoding, plan.neverLarger == nil
    else { return .decoded }
    if configuration.keepsEverything { return survey.canReconstructWhole ? .restored : .decoded }
    return configuration.metadata ?? .strip == .strip ? .reconstructed : .decoded
  }

  /// Returns whether an image may be passed through, as far as its format and the requested configurations show.
  ///
  /// The rewriter of JPEG XL buffers the beginning of the file, which others need not.
  static func isPossible(_ format: ImageFormat, _ configurations: [ProcessingConfiguration]) -> Bool {
    format.isRewritable && (format != .jxl || (configurations.count == 1 && configurations[0].allowsReconstruction))
  }

  /// Whether only metadata would be lost: the file contains one undamaged image, or an animation of which all frames are
  /// selected.
  private static func isPlain(_ header: ImageHeader, _ frames: FrameSelection) -> Bool {
    let isMultiImage = header.format.traits.hasCompanionImages  // what follows the first is dropped
    let isOnly = header.frameCount == 1 && (!header.hasDefaultImage || frames == .first)
    return (isOnly || isMultiImage || (header.hasFrames && frames.isAll))
      && header.warnings.allSatisfy { $0 == .brokenEXIF || ($0 == .firstFrameOnly && isMultiImage) }
  }

  /// Whether encoding would not reduce the size, or only by a lower quality than requested.
  private static func isCoarse(_ survey: Rewriter.Survey, beside encoder: EncoderOptions) -> Bool {
    if survey.isLossless { return encoder.quality == 100 || !encoder.isLossy }
    return encoder.isLossy && survey.quality <= encoder.quality
      && !(survey.hasFineChroma && encoder.subsampling == .quarter)
  }

  /// The change of the format; `nil` for ways that keep it.
  func recoding(_ encoder: EncoderOptions) -> Rewriter.Recoding? {
    switch self {
    case .decoded, .copied, .rotated: nil
    case .recompressed: .recompress(encoder.jxl)
    case .reconstructed: .reconstruct(isWhole: false)
    case .restored: .reconstruct(isWhole: true)
    }
  }

  /// The metadata that is written to the result; a file that is restored has its own.
  func metadata(_ encoder: EncoderOptions) -> EmbeddedMetadata {
    self == .restored ? EmbeddedMetadata() : encoder.metadata
  }

  /// Returns the maximum number of bytes that this way may allocate, for an image with a limit of `memory` bytes.
  func maxByteCount(memory: Int) -> UInt64 {
    self == .rotated ? UInt64(memory) / Self.rotationShare : UInt64(memory)
  }
}

extension ProcessingConfiguration {
  /// Whether the size and the quality of a result in JPEG may be those of a JPEG that is reconstructed.
  fileprivate var allowsReconstruction: Bool {
    let isJPEG = preferredFormat == nil || preferredFormat == .original || preferredFormat == .jpeg
    return isJPEG && !(alwaysEncode ?? false) && (compressionQuality ?? 1) == 1 && maxBytes == nil
  }

  /// Whether all of the image's metadata and its profile are to be kept, and nothing else is to be written.
  fileprivate var keepsEverything: Bool {
    let named = [keepEXIF, keepXMP, keepIPTC, keepLocation, keepSerialNumbers]
    return metadata == .selected && named.allSatisfy { $0 ?? false } && colorSpace == .keep && metadataTitle == nil
      && metadataCopyright == nil && metadataDescription == nil
  }
}

extension EncoderOptions {
  fileprivate var isLosslessJXL: Bool { format == .jxl && jxl.writesLossless }
}

extension Plan {
  /// Whether the result contains exactly the image's pixels, possibly rotated or flipped.
  var keepsPixels: Bool {
    let shown = storedSize.rotated(by: orientation)
    return !changesPixels && hidden.isEmpty && framing.imageSize == shown && framing.window == Window(shown)
  }
}
