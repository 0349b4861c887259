internal import ImageCodecs

/// Decodes an image while it is passed through, so that no file is delivered that cannot be decoded.
///
/// Small images are always decoded, as this is cheap. A JPEG without an end marker is decoded because nothing else
/// shows whether more of it is missing.
struct PassthroughTrial: ~Copyable {
  /// The maximum pixel count of an image that is always decoded, at full size.
  private static let maxPixelCount = 1 << 16

  private var decoder: Decoder
  private let scale: Int
  private var isStarted = false
  private var isDone = false

  /// Returns the scale of the trial: 8 for full size, 1 for the smallest scale, `nil` for no trial.
  ///
  /// - `following`: The bytes after the header, if the rest of the file is known.
  static func scale(_ header: ImageHeader, following: FollowingBytes?) -> Int? {
    if header.width * header.height <= maxPixelCount { return 8 }
    guard header.format == .jpeg, let following, !following.hasEndMarker else { return nil }
    return header.isProgressive ? 8 : 1
  }

  init(format: ImageFormat, scale: Int, limits: CodecLimits, budget: ImageBudget) throws(PipelineError) {
    do { decoder = try Decoder(format: format, limits: limits, budget: budget) } catch { throw PipelineError(error) }
    self.scale = scale
  }

  /// Decodes the next bytes of the result.
  /// - Throws: `corruptImage`, `truncatedImage`, or another error of the image.
  mutating func push(_ bytes: RawSpan, isLast: Bool) throws(PipelineError) {
    do {
      var rest = bytes
      if !isStarted {
        let progress = try decoder.readHeader(rest, isLast: isLast)
        guard progress.value else { return }
        rest = rest.extracting(droppingFirst: progress.consumedByteCount)
        _ = try decoder.start(scale: scale == 1 ? decoder.scales[0] : 8)
        isStarted = true
      }
      while !isDone {
        let progress = try decoder.read(rest, isLast: isLast)
        rest = rest.extracting(droppingFirst: progress.consumedByteCount)
        if progress.value == .needsInput { return }
        isDone = progress.value == .done
      }
    } catch { throw PipelineError(error) }
  }
}
