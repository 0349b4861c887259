internal import ImageCodecs

/// Places rows of the displayed image on a larger canvas, surrounded by the background color.
struct PadStage: Stage {
  private let framing: Framing
  private let color: Color
  private var format = PixelFormat.rgb8
  // Buffers for canvas rows that contain the image and for rows of background only; set after the start.
  private var rows: (canvas: RowBuffer, blank: RowBuffer)?
  // The numbers of background rows that are still to be emitted, above and below the image.
  private var above = 0
  private var below = 0
  private var flow: ByteFlow?
  private(set) var isPaused = false

  private static let rowCount = 16

  init(_ plan: Plan) {
    framing = plan.framing
    color = plan.background
  }

  /// The numbers of background rows above and below the image.
  private var blankRowCounts: (above: Int, below: Int) {
    (framing.top, framing.canvasSize.height - framing.imageSize.height - framing.top)
  }

  func estimatedByteCount(_ layout: inout PixelLayout) -> Int {
    2 * framing.canvasSize.width * layout.format.pixelByteCount * Self.rowCount
  }

  mutating func start(_ layout: inout PixelLayout, _ context: borrowing StageContext) throws(CodecError) -> Bool {
    format = layout.format
    flow = context.flow
    let rowByteCount = framing.canvasSize.width * format.pixelByteCount
    let samples = [color.red, color.green, color.blue, 255].prefix(format.channelCount)
    // A level of 8 bits twice is that of 16 bits.
    let pixel = format.is16Bit ? samples.flatMap { [$0, $0] } : Array(samples)
    let budget = context.budget
    func background() throws(CodecError) -> RowBuffer {
      let buffer = try RowBuffer(rowByteCount: rowByteCount, rowCount: Self.rowCount, budget: budget)
      buffer.fill(pixel)
      return buffer
    }
    rows = (try background(), try background())
    (above, below) = blankRowCounts
    return true
  }

  /// Emits the rows above the image.
  mutating func beginFrame(_ frame: inout ImageFrame, next: NextStage) throws(PipelineError) {
    above = try pushBlank(above, next: next)
  }

  /// Emits canvas rows that contain the image's rows.
  mutating func push(_ strip: borrowing Strip, next: NextStage) throws(PipelineError) {
    guard let canvas = rows?.canvas else { return }
    for rows in strip.plane(0).portions(of: Self.rowCount) {
      canvas.write(rows, at: 0, byteOffset: framing.left * format.pixelByteCount)
      try next(Strip(format: format, rows: canvas.rows(count: rows.rowCount)))
    }
  }

  /// Emits the rows below the image.
  mutating func endFrame(next: NextStage) throws(PipelineError) {
    below = try pushBlank(below, next: next)
    if !isPaused { (above, below) = blankRowCounts }
  }

  /// Emits up to `count` background rows.
  /// - Returns: The number of rows still to be emitted; above 0 if it paused.
  private mutating func pushBlank(_ count: Int, next: NextStage) throws(PipelineError) -> Int {
    guard let blank = rows?.blank else { return 0 }
    var left = count
    isPaused = false
    while left > 0 {
      if flow?.isFull == true {
        isPaused = true
        return left
      }
      let portion = min(left, Self.rowCount)
      try next(Strip(format: format, rows: blank.rows(count: portion)))
      left -= portion
    }
    return 0
  }
}
