internal import ImageCodecs

/// Rows of the image as shown to rows of a larger canvas: the background's colour around them.
struct PadStage: Stage {
  private let framing: Framing
  private let color: Color
  private var format = PixelFormat.rgb8
  // Room for rows with the image in them, and rows of the background alone, once it is started.
  private var rows: (canvas: RowBuffer, blank: RowBuffer)?
  private var isBegun = false

  private static let rowCount = 16

  static var name: String { "pad" }

  init(_ plan: Plan) {
    framing = plan.framing
    color = plan.background
  }

  func estimatedByteCount(_ layout: inout PixelLayout) -> Int {
    2 * framing.canvasSize.width * layout.format.pixelByteCount * Self.rowCount
  }

  mutating func start(_ layout: inout PixelLayout, _ context: borrowing StageContext) throws(PipelineError) -> Bool {
    format = layout.format
    let rowByteCount = framing.canvasSize.width * format.pixelByteCount
    let pixel = [color.red, color.green, color.blue, 255].prefix(format.pixelByteCount)
    func background() throws(PipelineError) -> RowBuffer {
      let buffer = try context.allocate { (budget) throws(CodecError) in
        try RowBuffer(rowByteCount: rowByteCount, rowCount: Self.rowCount, budget: budget)
      }
      buffer.fill(Array(pixel))
      return buffer
    }
    rows = (try background(), try background())
    return true
  }

  /// Takes rows of the image and hands on rows of the canvas.
  mutating func push(_ strip: borrowing Strip, next: NextStage) throws(PipelineError) {
    guard let canvas = rows?.canvas else { return }
    if !isBegun {
      isBegun = true
      try pushBlank(framing.top, next: next)
    }
    for rows in strip.plane(0).portions(of: Self.rowCount) {
      canvas.write(rows, at: 0, byteOffset: framing.left * format.pixelByteCount)
      try next(Strip(format: format, rows: canvas.rows(count: rows.rowCount)))
    }
  }

  /// Hands on the rows below the image.
  func finish(next: NextStage) throws(PipelineError) {
    try pushBlank(framing.canvasSize.height - framing.pictureSize.height - framing.top, next: next)
  }

  private func pushBlank(_ count: Int, next: NextStage) throws(PipelineError) {
    guard let blank = rows?.blank else { return }
    var left = count
    while left > 0 {
      let portion = min(left, Self.rowCount)
      try next(Strip(format: format, rows: blank.rows(count: portion)))
      left -= portion
    }
  }
}
