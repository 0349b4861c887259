internal import ImageCodecs

/// Decodes an image while it is passed through, so that no file is delivered that cannot be decoded.
struct PassthroughTrial: ~Copyable {
  private var decoder: Decoder
  private let scale: Int
  private let allowance: WorkAllowance
  private var isStarted = false
  private var isDone = false

  /// Returns the cheapest scale at which a decoder reads all compressed data of an image.
  ///
  /// A progressive JPEG has scans that only larger scales need.
  static func scale(of header: ImageHeader, scales: [Int]) -> Int { header.isProgressive ? 8 : scales[0] }

  init(
    format: ImageFormat, scale: Int, limits: CodecLimits, budget: ImageBudget, allowance: WorkAllowance
  ) throws(PipelineError) {
    do { decoder = try Decoder(format: format, limits: limits, budget: budget) } catch { throw PipelineError(error) }
    self.scale = scale
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
      } catch { throw PipelineError(error) }
    }
  }
}
