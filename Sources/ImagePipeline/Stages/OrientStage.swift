internal import ImageCodecs
internal import ImageKernels

/// Transforms rows of the result from stored to displayed orientation.
///
/// A horizontal flip is applied row by row. Every other orientation starts with the last stored row or column, so the
/// stage buffers the result, which is usually small, but never the input.
struct OrientStage: Stage {
  private let orientation: Orientation
  private let storedSize: PixelSize
  private let chromaScale: (horizontal: Double, vertical: Double)
  private var format = PixelFormat.rgb8
  private var planes: [PlaneOrienter] = []
  private var allowance: WorkAllowance?
  private var flow: ByteFlow?
  // The rows in the planes' buffers that `endFrame` has not emitted yet.
  private var unsent: [Strip.Rows]?
  private(set) var isPaused = false

  /// More rows than any other stage emits at once.
  static let stripRowCount = 64

  init(_ plan: Plan) {
    orientation = plan.orientation
    storedSize = plan.storedOutputSize
    chromaScale = plan.storedChromaScale
  }

  func estimatedByteCount(_ layout: inout PixelLayout) -> Int {
    let format = layout.format
    return storedSizes(format).reduce(0) { sum, size in
      sum
        + PlaneOrienter.estimatedByteCount(
          orientation, width: size.width, height: size.height, pixelByteCount: format.pixelByteCount)
    }
  }

  mutating func start(_ layout: inout PixelLayout, _ context: borrowing StageContext) throws(CodecError) -> Bool {
    format = layout.format
    allowance = context.allowance
    flow = context.flow
    for size in storedSizes(format) {
      planes.append(
        try PlaneOrienter(
          orientation, width: size.width, height: size.height, pixelByteCount: format.pixelByteCount,
          budget: context.budget))
    }
    return true
  }

  /// Transforms stored rows; emits them immediately if the orientation allows it.
  mutating func push(_ strip: borrowing Strip, next: NextStage) throws(PipelineError) {
    if orientation == .mirrored {
      try mirror(planes.indices.map { strip.plane($0) }, next: next)
    } else {
      for index in planes.indices { planes[index].place(strip.plane(index)) }
    }
  }

  /// Emits the buffered image, if there is one.
  mutating func endFrame(next: NextStage) throws(PipelineError) {
    if orientation == .mirrored { return }
    let heights = planes.map(\.rows.rowCount)
    var waiting = unsent ?? planes.map(\.rows)
    isPaused = false
    while waiting.contains(where: { !$0.isEmpty }) {
      try allowance?.check()
      if flow?.isFull == true {
        (unsent, isPaused) = (waiting, true)
        return
      }
      // Subsampled planes advance by half as many rows, so that no plane runs ahead and accumulates in the encoder.
      let portion = waiting.indices.map { index in
        waiting[index].prefix(heights[index] < heights[0] ? Self.stripRowCount / 2 : Self.stripRowCount)
      }
      for index in waiting.indices { waiting[index].dropFirst(portion[index].rowCount) }
      try next(Strip(format: format, rows: portion))
    }
    unsent = nil
    for index in planes.indices { planes[index].reset() }
  }

  private func mirror(_ rows: [Strip.Rows], next: NextStage) throws(PipelineError) {
    var waiting = rows
    while waiting.contains(where: { !$0.isEmpty }) {
      var mirrored = waiting
      for index in planes.indices {
        let portion = waiting[index].prefix(PlaneOrienter.mirroredRowCount)
        mirrored[index] = planes[index].mirror(portion)
        waiting[index].dropFirst(portion.rowCount)
      }
      try next(Strip(format: format, rows: mirrored))
    }
  }

  /// Returns the stored size of each plane.
  private func storedSizes(_ format: PixelFormat) -> [PixelSize] {
    guard format == .ycc8 else { return [storedSize] }
    let chroma = PixelSize(
      width: Int((Double(storedSize.width) * chromaScale.horizontal).rounded(.up)),
      height: Int((Double(storedSize.height) * chromaScale.vertical).rounded(.up)))
    return [storedSize, chroma, chroma]
  }
}
