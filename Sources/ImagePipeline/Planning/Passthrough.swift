internal import ImageCodecs

/// How an image gets to its result.
package enum Passthrough: String, Sendable, Hashable {
  /// It is decoded, goes through the stages, and is encoded.
  case decoded
  /// Its file is passed on without metadata.
  case copied
  /// As `copied`, and the blocks of a JPEG are turned without loss.
  case turned
}

extension Passthrough {
  /// What of an image's memory limit turning may take: its coefficients are held, twice.
  private static let turningShare: UInt64 = 4

  /// The cheapest passthrough by which the result is no worse and, as far as the header tells, not larger than by decoding.
  ///
  /// An image passes when nothing is asked for that changes its pixels, and it was compressed no better than asked: a
  /// JPEG by its quantisation tables and chroma, a lossy WebP by its quantizers.
  /// - Parameters:
  ///   - plan: of the same image and configuration.
  ///   - header: the image's.
  ///   - configuration: what is asked for.
  ///   - survey: what can be done with the image.
  ///   - byteCount: of the whole file; `nil` when it is not known.
  init(
    plan: Plan, header: ImageHeader, configuration: ProcessingConfiguration, survey: Rewriter.Survey, byteCount: UInt64?
  ) {
    // What is passed on is not decoded, so that nothing is known of damage inside.
    let isTolerant = configuration.tolerateTruncation ?? false || configuration.tolerateDamage ?? false
    let isAsked = !(configuration.alwaysEncode ?? false) && !isTolerant
    // What a file says of its maker behind its data is not known yet; a rewritten one has no place for it any more.
    let hasNoTrailingMetadata = configuration.metadata != .keepCopyright || !header.format.traits.hasTrailingMetadata
    guard isAsked, hasNoTrailingMetadata, survey.canCopy, plan.encoder.format == header.format, plan.keepsPixels,
      Self.isPlain(header), !plan.encoder.asksForCoding, Self.isCoarse(survey, beside: plan.encoder)
    else {
      self = .decoded
      return
    }
    if plan.orientation == .up {
      // What is put in: JFIF, a container of WebP, or the rights.
      let most = byteCount.map { $0 + UInt64(plan.encoder.exif.count) + 64 }
      self = configuration.maxBytes.map { limit in most.map { $0 <= limit } ?? false } ?? true ? .copied : .decoded
    } else {
      self = survey.turns.contains(plan.orientation) && configuration.maxBytes == nil ? .turned : .decoded
    }
  }

  /// Whether nothing but its metadata would be lost: one image, undamaged, in sRGB.
  private static func isPlain(_ header: ImageHeader) -> Bool {
    let isMultiImage = header.format.traits.hasCompanionImages  // what follows the first is dropped
    return header.profileByteCount == 0 && (header.frameCount == 1 || isMultiImage)
      && header.warnings.allSatisfy { $0 == .brokenEXIF || ($0 == .firstFrameOnly && isMultiImage) }
  }

  /// Whether encoding would give no fewer bytes, or fewer only because it does worse than was asked for.
  private static func isCoarse(_ survey: Rewriter.Survey, beside encoder: EncoderOptions) -> Bool {
    if survey.isLossless { return encoder.quality == 100 || !encoder.isLossy }
    return encoder.isLossy && survey.quality <= encoder.quality
      && !(survey.hasFineChroma && encoder.subsampling == .quarter)
  }

  /// The most bytes that this passthrough may hold, of an image that may hold `memory`.
  func maxByteCount(memory: Int) -> UInt64 {
    self == .turned ? UInt64(memory) / Self.turningShare : UInt64(memory)
  }
}

extension Plan {
  /// Whether the result has all of the image's pixels, turned at most, and no others.
  fileprivate var keepsPixels: Bool {
    let shown = storedSize.turned(by: orientation)
    return !changesPixels && framing.imageSize == shown && framing.window == Window(shown)
  }
}
