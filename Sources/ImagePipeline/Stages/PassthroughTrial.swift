internal import ImageCodecs

/// Decodes an image while it is passed on, so that none is delivered that no decoder opens.
///
/// Small images are tried, as that costs little, and a JPEG that lacks its end marker, as nothing else says whether it lacks
/// more.
struct PassthroughTrial: ~Copyable {
  /// The largest image that is tried at its full size.
  private static let maxPixelCount = 1 << 16

  private var decoder: Decoder
  private let scale: Int
  private var isStarted = false
  private var isDone = false

  /// 8 for a trial at full size, 1 for one at the smallest scale, `nil` for none.
  ///
  /// - `following`: the bytes behind the header, where all of them are known.
  static func scale(_ header: ImageHeader, following: RawSpan?) -> Int? {
    if header.width * header.height <= maxPixelCount { return 8 }
    guard header.format == .jpeg, let following, !header.format.hasEndMarker(following) else { return nil }
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
