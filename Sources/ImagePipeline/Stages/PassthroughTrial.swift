internal import ImageCodecs

/// Decodes an image while it is passed through, so that no file is delivered that cannot be decoded.
struct PassthroughTrial: ~Copyable {
  private var decoder: Decoder
  private let scale: Int
  private let frames: FrameSelection
  private let allowance: WorkAllowance
  private var isStarted = false
  private var isDone = false
  // The number of frames that were decoded, and the sum of their durations in nanoseconds.
  private var frameCount = 0
  private var nanoseconds: UInt64 = 0

  /// Returns the cheapest scale at which a decoder reads all compressed data of an image.
  ///
  /// A progressive JPEG has scans that only larger scales need.
  static func scale(of header: ImageHeader, scales: [Int]) -> Int { header.isProgressive ? 8 : scales[0] }

  init(
    format: ImageFormat, scale: Int, frames: FrameSelection, limits: CodecLimits, budget: ImageBudget,
    allowance: WorkAllowance
  ) throws(PipelineError) {
    do { decoder = try Decoder(format: format, limits: limits, budget: budget) } catch { throw PipelineError(error) }
    self.scale = scale
    self.frames = frames
    self.allowance = allowance
  }

  /// Decodes the next bytes of the result.
  /// - Throws: `corruptImage`, `truncatedImage`, `cancelled`, or another error of the image.
  mutating func push(_ bytes: RawSpan, isLast: Bool) throws(PipelineError) {
    var rest = bytes
    if !isStarted {
      do {
        let progress = try decoder.readHeader(rest, isLast: isLast)
        guard progress.value else { return }
        rest = rest.extracting(droppingFirst: progress.consumedByteCount)
        if frames != .first { try decoder.selectFrames(first: frames.first, count: frames.count) }
        _ = try decoder.start(scale: scale, maySkipSmoothing: true)
      } catch { throw PipelineError(error) }
      isStarted = true
    }
    while !isDone {
      try allowance.check()
      do {
        let progress = try decoder.read(rest, isLast: isLast)
        rest = rest.extracting(droppingFirst: progress.consumedByteCount)
        if progress.value == .needsInput { return }
        isDone = progress.value == .done
        if isDone || progress.value == .frameDone {
          frameCount += 1
          nanoseconds += min(decoder.frame.nanoseconds, .max - nanoseconds)
        }
      } catch { throw PipelineError(error) }
    }
  }

  /// Whether damage was found that decoders repair.
  var isDamaged: Bool { decoder.header.warnings.contains(.damaged) }

  /// Adds what the frames of a complete animation are to its properties.
  func describeFrames(of info: inout ImageInfo) {
    guard frames.isAnimation else { return }
    info.frameCount = frameCount
    guard frameCount > 1 else { return }
    (info.duration, info.playCount) = (.nanoseconds(Int64(clamping: nanoseconds)), decoder.frame.playCount)
  }
}
