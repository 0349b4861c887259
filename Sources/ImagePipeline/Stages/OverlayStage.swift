internal import ImageCodecs
internal import ImageKernels

/// Draws overlays on rows of the displayed result.
///
/// Rows that no overlay covers bypass the stage; the others are copied, a few at a time. Planes of YCbCr stay planes: the
/// plan sees to it that overlays on them are not tiled and blended over.
struct OverlayStage: Stage {
  private let overlays: [PlannedOverlay]
  private let canvas: PixelSize
  private let subsampling: ChromaSubsampling
  private var pixels: [OverlayPixels] = []
  private var format = PixelFormat.rgb8
  private var planes: [Plane] = []

  /// One plane of the result.
  private struct Plane {
    let buffer: RowBuffer
    /// The number of pixels across and down that a sample stands for.
    let pixelsPerSample: (across: Int, down: Int)
    /// The row of the plane that comes next.
    var row = 0
  }

  private static let rowCount = 16

  init(_ plan: Plan) {
    overlays = plan.overlays
    canvas = plan.outputSize
    subsampling = plan.encoder.subsampling
  }

  func estimatedByteCount(_ layout: inout PixelLayout) -> Int {
    canvas.width * layout.format.pixelByteCount * Self.rowCount * layout.format.planeCount
  }

  mutating func start(_ layout: inout PixelLayout, _ context: borrowing StageContext) throws(CodecError) -> Bool {
    format = layout.format
    guard format == .rgb8 || format == .rgba8 || format == .ycc8, context.overlays.count == overlays.count else {
      throw CodecError(code: .misuse, message: "overlays cannot be drawn on rows of \(format)")
    }
    pixels = context.overlays
    for index in 0..<format.planeCount {
      let across = index == 0 ? 1 : Int(1 / subsampling.horizontalScale)
      let down = index == 0 ? 1 : Int(1 / subsampling.verticalScale)
      let rowByteCount = (canvas.width + across - 1) / across * format.pixelByteCount
      let buffer = try RowBuffer(rowByteCount: rowByteCount, rowCount: Self.rowCount, budget: context.budget)
      planes.append(Plane(buffer: buffer, pixelsPerSample: (across, down)))
    }
    return true
  }

  /// Planes advance together, as far as there are rows, so that none runs ahead and accumulates in the encoder.
  mutating func push(_ strip: borrowing Strip, next: NextStage) throws(PipelineError) {
    var waiting = planes.indices.map { strip.plane($0) }
    while waiting.contains(where: { !$0.isEmpty }) {
      var portion = waiting
      for index in planes.indices {
        let rows = waiting[index].prefix(Self.rowCount / planes[index].pixelsPerSample.down)
        portion[index] = drawn(rows, index)
        waiting[index].dropFirst(rows.rowCount)
        planes[index].row += rows.rowCount
      }
      try next(Strip(format: format, rows: portion))
    }
  }

  mutating func endFrame(next: NextStage) throws(PipelineError) {
    for index in planes.indices { planes[index].row = 0 }
  }

  /// Returns rows of a plane with the overlays that cover them; the rows themselves if there are none.
  private func drawn(_ rows: Strip.Rows, _ index: Int) -> Strip.Rows {
    let (plane, buffer) = (planes[index], planes[index].buffer)
    let down = plane.pixelsPerSample.down
    let range = plane.row * down..<(plane.row + rows.rowCount) * down
    guard overlays.contains(where: { $0.rows.overlaps(range) }) else { return rows }
    buffer.write(
      rows.part(first: 0, count: rows.rowCount, byteOffset: 0, byteCount: buffer.rowByteCount), at: 0)
    for (overlay, pixels) in zip(overlays, pixels) {
      for row in 0..<rows.rowCount where overlay.rows.overlaps((plane.row + row) * down..<(plane.row + row + 1) * down)
      {
        if format == .ycc8 {
          pixels.draw(
            left: overlay.left, top: overlay.top, imageSize: (canvas.width, canvas.height), channel: index,
            pixelsPerSample: plane.pixelsPerSample, planeRow: plane.row + row, onto: buffer, row: row)
        } else {
          draw(overlay, pixels, at: plane.row + row, onto: buffer, row: row)
        }
      }
    }
    return buffer.rows(count: rows.rowCount)
  }

  /// Draws a row of an overlay, or of its tiles.
  private func draw(
    _ overlay: PlannedOverlay, _ pixels: OverlayPixels, at row: Int, onto buffer: RowBuffer, row bufferRow: Int
  ) {
    let (width, height) = (pixels.width, pixels.height)
    let overlayRow = ((row - overlay.top) % height + height) % height
    var column = overlay.isTiled ? 0 : max(0, overlay.left)
    var first = ((column - overlay.left) % width + width) % width
    let end = overlay.isTiled ? canvas.width : min(canvas.width, overlay.left + width)
    while column < end {
      let count = min(width - first, end - column)
      pixels.draw(
        overlay.blend, row: overlayRow, columns: first..<(first + count), onto: buffer, row: bufferRow, at: column,
        format: format)
      column += count
      first = 0
    }
  }
}
