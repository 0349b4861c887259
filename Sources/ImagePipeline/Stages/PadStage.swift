internal import ImageCodecs

/// Rows of the picture as shown to rows of a larger canvas: the background's colour around them.
///
/// Without padding, strips pass as they are.
struct PadStage {
  private let framing: Framing
  private let format: PixelFormat
  private let canvas: PixelBuffer?
  private let blank: PixelBuffer?
  private var isBegun = false

  private static let rowCount = 16

  init(plan: Plan, budget: PictureBudget) throws(PipelineError) {
    framing = plan.framing
    format = plan.encoder.pixelFormat
    guard plan.framing.isPadded else {
      (canvas, blank) = (nil, nil)
      return
    }
    let byteCount = plan.framing.canvasSize.width * format.pixelByteCount * Self.rowCount
    do {
      let canvas = try PixelBuffer(byteCount: byteCount, budget: budget)
      let blank = try PixelBuffer(byteCount: byteCount, budget: budget)
      for buffer in [canvas, blank] { Self.fill(buffer, byteCount, plan.background, format) }
      (self.canvas, self.blank) = (canvas, blank)
    } catch { throw PipelineError(error) }
  }

  /// An upper bound of what this stage charges.
  static func estimatedByteCount(_ plan: Plan) -> Int {
    plan.framing.isPadded ? 2 * plan.outputSize.width * plan.encoder.pixelFormat.pixelByteCount * rowCount : 0
  }

  private static func fill(_ buffer: PixelBuffer, _ byteCount: Int, _ color: Color, _ format: PixelFormat) {
    let pixel = [color.red, color.green, color.blue, 255]
    let bytes = buffer.base.assumingMemoryBound(to: UInt8.self)
    for offset in 0..<byteCount { bytes[offset] = pixel[offset % format.pixelByteCount] }
  }

  /// Takes rows of the picture and hands on rows of the canvas.
  mutating func push(
    _ strip: borrowing Strip, next: (borrowing Strip) throws(PipelineError) -> Void
  ) throws(PipelineError) {
    guard let canvas else { return try next(strip) }
    if !isBegun {
      isBegun = true
      try pushBlank(framing.top, next: next)
    }
    let all = strip.plane(0)
    for rows in all.portions(of: Self.rowCount) {
      for row in 0..<rows.rowCount {
        let place = canvas.base + row * stride + framing.left * format.pixelByteCount
        place.copyMemory(from: rows.row(row), byteCount: framing.pictureSize.width * format.pixelByteCount)
      }
      try next(Strip(format: format, rows: self.rows(of: canvas, rows.rowCount)))
    }
  }

  /// Hands on the rows below the picture.
  mutating func finish(next: (borrowing Strip) throws(PipelineError) -> Void) throws(PipelineError) {
    try pushBlank(framing.canvasSize.height - framing.pictureSize.height - framing.top, next: next)
  }

  private func pushBlank(
    _ count: Int, next: (borrowing Strip) throws(PipelineError) -> Void
  ) throws(PipelineError) {
    guard let blank else { return }
    var left = count
    while left > 0 {
      let portion = min(left, Self.rowCount)
      try next(Strip(format: format, rows: rows(of: blank, portion)))
      left -= portion
    }
  }

  private var stride: Int { framing.canvasSize.width * format.pixelByteCount }

  private func rows(of buffer: PixelBuffer, _ count: Int) -> Strip.Rows {
    Strip.Rows(base: UnsafeRawPointer(buffer.base), rowStride: stride, rowCount: count)
  }
}
