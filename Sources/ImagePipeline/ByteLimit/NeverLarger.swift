internal import ImageCodecs

/// The rule that a result has no more bytes than its image.
struct NeverLarger: Sendable, Hashable {
  /// The minimum quality, 1 to 100, of a result in its image's format, and of one in another format, which may need
  /// more bytes for the same quality.
  private static let floor = (sameFormat: 20, otherFormat: 60)
  /// The maximum pixel count of a result that is buffered to be encoded again.
  private static let maxPixelCount = 1 << 22
  /// The bytes per pixel that nearly all images exceed, and those that nearly all results of these do not reach, below
  /// and from quality 90 on.
  private static let density = (image: 0.04, coarse: 0.5, fine: 1.5)
  /// The bytes per pixel that results do not reach, below and from quality 90 on, unless their images are noise.
  private static let maxDensity = (coarse: 1.0, fine: 2.0)
  /// The reduction of the pixel count from which on animations are hardly ever larger than their images.
  private static let maxReductionOfFrames = 6.0

  /// The reason why the quality of a larger result is not lowered.
  enum Obstacle: Sendable, Hashable {
    case lossless, similarity, tooManyPixels, unexpected
  }

  /// The minimum quality, 1 to 100, to which the quality may be lowered.
  private(set) var minQuality: Int
  /// The reason why the quality is not lowered; `nil` if it is.
  let obstacle: Obstacle?
  /// The size of a file in bytes from which on a larger result is not expected.
  let sufficientByteCount: UInt64
  /// The size limit in bytes, which may be another reason for a lower quality.
  private let maxBytes: UInt64?
  private let inputFormat: ImageFormat

  /// Creates the rule for a result; returns `nil` if it does not apply.
  ///
  /// It applies to results that show the whole image without enlarging or padding it.
  init?(
    _ draft: PlanDraft, inputFormat: ImageFormat, inputSize: PixelSize, encoder: EncoderOptions
  ) {
    let (configuration, framing) = (draft.configuration, draft.framing)
    let shown = framing.window.pixelSize
    guard configuration.neverLarger ?? false, encoder.format != .raw, !framing.isPadded, framing.reduction >= 1,
      framing.window == Window(shown), shown.pixelCount == inputSize.pixelCount
    else { return nil }
    maxBytes = configuration.maxBytes
    self.inputFormat = inputFormat
    let isAnimation = encoder.hasFrames
    minQuality = Self.minQuality(of: encoder, inputFormat)
    let isFine = encoder.quality >= EncoderOptions.minQualityOfFullChroma
    let pixelCount = Double(framing.imageSize.pixelCount)
    let expected = pixelCount * (isFine ? Self.density.fine : Self.density.coarse)
    // The number of frames is not known, so no size suffices for all of them.
    sufficientByteCount =
      isAnimation ? .max : UInt64(pixelCount * (isFine ? Self.maxDensity.fine : Self.maxDensity.coarse))
    obstacle =
      if isAnimation {
        Self.obstacle(toFramesOf: encoder, reduction: Double(shown.pixelCount) / pixelCount)
      } else if !encoder.isLossy {
        .lossless
      } else if configuration.targetSimilarity != nil {
        .similarity
      } else if framing.imageSize.pixelCount > Self.maxPixelCount {
        .tooManyPixels
      } else if expected < Double(shown.pixelCount) * Self.density.image {
        .unexpected
      } else {
        nil
      }
  }

  /// Returns the rule for a result whose format, and quality, the image itself decided.
  func applied(to encoder: EncoderOptions) -> NeverLarger {
    var rule = self
    rule.minQuality = Self.minQuality(of: encoder, inputFormat)
    return rule
  }

  /// Returns the reason why an animation is not encoded again.
  /// - `reduction`: The pixel count of the image, divided by that of the result.
  private static func obstacle(toFramesOf encoder: EncoderOptions, reduction: Double) -> Obstacle? {
    guard encoder.canShrinkFrames else { return .lossless }
    return reduction > maxReductionOfFrames ? .unexpected : nil
  }

  private static func minQuality(of encoder: EncoderOptions, _ inputFormat: ImageFormat) -> Int {
    min(encoder.quality, floor(isSameFormat: encoder.format == inputFormat))
  }

  /// Returns the quality, 1 to 100, below which a result is not worth its bytes.
  private static func floor(isSameFormat: Bool) -> Int {
    isSameFormat ? floor.sameFormat : floor.otherFormat
  }

  /// Returns what a request without the rule can change about a result that is larger than its image; `nil` if its
  /// quality is already low, it is not compressed, or it is a preview.
  static func remedy(_ draft: PlanDraft, inputFormat: ImageFormat, encoder: EncoderOptions) -> String? {
    if draft.isPreview || encoder.format == .raw { return nil }
    guard encoder.isLossy else { return "request a lossy format" }
    guard draft.configuration.targetSimilarity == nil else { return "lower target_similarity" }
    let isLow = encoder.quality <= floor(isSameFormat: encoder.format == inputFormat)
    return isLow ? nil : "lower compression_quality"
  }

  /// Describes what the rule did to a result.
  /// - Parameters:
  ///   - options: The options of the result's encoder.
  ///   - requested: The requested options.
  ///   - byteCount: The size of the result.
  ///   - inputByteCount: The size of the image.
  /// - Returns: The warnings.
  func warnings(
    _ options: EncoderOptions, requested: EncoderOptions, byteCount: UInt64, inputByteCount: UInt64
  ) -> [Warning] {
    guard byteCount > inputByteCount else {
      guard obstacle == nil, inputByteCount < maxBytes ?? .max,
        options.reportedQuality ?? 0 < requested.reportedQuality ?? 0
      else { return [] }
      return [
        .reducedQuality(
          options.reportedQuality, requested: requested.reportedQuality, imageByteCount: inputByteCount)
      ]
    }
    guard byteCount > Pipeline.maxTrivialByteCount else { return [] }
    let reason =
      switch obstacle {
      case .lossless: "\(options.format.rawValue) is lossless here"
      case .similarity: "target_similarity comes first"
      case .tooManyPixels: "results above \(Self.maxPixelCount) pixels are not encoded again"
      case .unexpected: "results of far fewer pixels than the image are not encoded again"
      case nil where inputByteCount >= sufficientByteCount: "a result of so many bytes per pixel is not encoded again"
      case nil where options.width != requested.width: "its dimensions were already reduced to fit max_bytes"
      case nil where !options.isLossy && options.format != .gif: "\(options.format.rawValue) is lossless here"
      case nil where !options.isLossy: "it would need fewer than \(ColorSearch.minCountOfSmaller) colors"
      case nil: "it would need a quality below \(Double(minQuality) / 100)"
      }
    return [
      .largerThanImage(
        byteCount: byteCount, imageByteCount: inputByteCount, note: ", despite never_larger: \(reason)")
    ]
  }
}
