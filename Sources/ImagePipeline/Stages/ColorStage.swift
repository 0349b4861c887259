internal import ImageCodecs
internal import ImageKernels

/// Converts rows of the result's size to the pixel format of the filters or the encoder.
///
/// It merges color planes to RGB, divides by alpha or flattens onto the background, and rounds 16-bit samples to 8
/// bits unless the result keeps them. Strips that already have the format bypass the stage.
struct ColorStage: Stage {
  private let width: Int
  private let background: Color
  private let format: PixelFormat
  private var work: Work?

  /// The conversion of a started stage.
  private enum Work {
    case planes(YCCMerger)
    case packed(PixelConverter)
  }

  /// Creates a stage that converts to `format`.
  init(_ plan: Plan, to format: PixelFormat) {
    width = plan.storedOutputSize.width
    background = plan.background
    self.format = format
  }

  func estimatedByteCount(_ layout: inout PixelLayout) -> Int {
    let input = layout.format
    layout.format = format
    if input == format { return 0 }
    return input == .ycc8
      ? YCCMerger.estimatedByteCount(width: width) : PixelConverter.estimatedByteCount(width: width, to: format)
  }

  mutating func start(_ layout: inout PixelLayout, _ context: borrowing StageContext) throws(CodecError) -> Bool {
    let input = layout.format
    guard input != format else { return false }
    if input == .ycc8, format == .rgb8 {
      work = .planes(try YCCMerger(width: width, budget: context.budget))
    } else {
      work = .packed(
        try PixelConverter(
          from: input, to: format, width: width, background: [background.red, background.green, background.blue],
          budget: context.budget))
    }
    layout.format = format
    return true
  }

  func push(_ strip: borrowing Strip, next: NextStage) throws(PipelineError) {
    switch work {
    case .planes(let merger): try merge(strip, with: merger, next: next)
    case .packed(let converter):
      for rows in strip.plane(0).portions(of: converter.rowCount) {
        try next(Strip(format: format, rows: converter.convert(rows)))
      }
    case nil: break
    }
  }

  private func merge(_ strip: borrowing Strip, with merger: YCCMerger, next: NextStage) throws(PipelineError) {
    var waiting = (0..<3).map { strip.plane($0) }
    while waiting.contains(where: { !$0.isEmpty }) {
      do { try merger.push(&waiting) } catch { throw PipelineError(error) }
      while true {
        let rows = merger.read()
        if rows.isEmpty { break }
        try next(Strip(format: format, rows: rows))
      }
    }
  }
}
