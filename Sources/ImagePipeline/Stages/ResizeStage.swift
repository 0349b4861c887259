internal import ImageCodecs
internal import ImageKernels
internal import Tracing

/// Resamples decoded rows to the result's size, plane by plane.
///
/// Images with alpha are premultiplied first, so that the color of transparent pixels never becomes visible. If no
/// plane changes its size, strips bypass the stage. To resize exactly as Pillow does, or in linear light, planes are
/// merged first, and alpha is left to the resizer.
struct ResizeStage: Stage {
  private let plan: Plan
  private var format = PixelFormat.rgb8
  private var planes: [PlaneResizer] = []
  private var windows: [PlaneWindow] = []
  private var premultiplier: Premultiplier?
  private var merger: PlaneMerger?
  private var flow: ByteFlow?
  // Rows of the current strip: those that were not yet offered to the planes, and those that the planes are consuming.
  private var rest: [Strip.Rows] = []
  private var waiting: [Strip.Rows] = []
  private(set) var isPaused = false

  /// The number of rows that are premultiplied at once.
  private static let premultipliedRowCount = 8

  static var span: StageSpan { .resize }
  static var endsSpan: Bool { true }

  init(_ plan: Plan) { self.plan = plan }

  func estimatedByteCount(_ layout: inout PixelLayout) -> Int {
    let (decoded, work) = (layout, Resizing(plan, layout))
    layout = work.layout
    if work.isIdentity { return 0 }
    var sum = work.axes.reduce(0) { sum, axis in
      sum
        + PlaneResizer.byteCount(
          horizontal: axis.horizontal, vertical: axis.vertical, format: work.format, resampling: work.resampling,
          columnsFirst: work.columnsFirst)
    }
    if work.isMerged { sum += PlaneMerger.estimatedByteCount(decoded) }
    guard work.format == .premultipliedRGBA16 else { return sum }
    return sum + Premultiplier.byteCount(width: work.windows[0].columnCount, rowCount: Self.premultipliedRowCount)
  }

  mutating func start(_ layout: inout PixelLayout, _ context: borrowing StageContext) throws(CodecError) -> Bool {
    let (decoded, work) = (layout, Resizing(plan, layout))
    if work.isIdentity { return false }
    for axis in work.axes {
      planes.append(
        try PlaneResizer(
          horizontal: axis.horizontal, vertical: axis.vertical, format: work.format, resampling: work.resampling,
          columnsFirst: work.columnsFirst, known: planes.last, budget: context.budget))
    }
    if work.isMerged { merger = try PlaneMerger(decoded, doubles: true, budget: context.budget) }
    (windows, format, layout) = (work.windows, work.format, work.layout)
    if format == .premultipliedRGBA16 {
      premultiplier = try Premultiplier(
        decoded.format, width: windows[0].columnCount, rowCount: Self.premultipliedRowCount, budget: context.budget)
    }
    flow = context.flow
    return true
  }

  mutating func beginFrame(_ frame: inout ImageFrame, next: NextStage) throws(PipelineError) {
    guard plan.repeatsRows, premultiplier != nil, windows[0].isWhole else { return }
    (frame.leftOutAbove, frame.leftOutBelow) = planes[0].keep(above: frame.keptAbove, below: frame.keptBelow)
  }

  /// Resamples the rows of a strip and emits the rows that they complete.
  ///
  /// A few input rows can complete any number of output rows, so the call may pause in between.
  mutating func push(_ strip: borrowing Strip, next: NextStage) throws(PipelineError) {
    if !isPaused {
      rest = []
      if merger != nil {
        merger?.push(strip)
      } else {
        rest = planes.indices.map { windows[$0].take(strip.plane($0)) }
      }
      guard try takePortion() else { return }
    }
    repeat {
      isPaused = try !resample(next: next)
      if isPaused { return }
    } while try takePortion()
  }

  /// Offers the next rows of the strip to the planes.
  /// - Returns: Whether there were any.
  private mutating func takePortion() throws(PipelineError) -> Bool {
    if merger != nil {
      let rows = try mergedRows()
      waiting = [windows[0].take(rows)]
      return !rows.isEmpty
    } else if let premultiplier {
      rest[0].dropFirst(planes[0].skip(rest[0].rowCount))
      if rest[0].isEmpty { return false }
      let portion = rest[0].prefix(premultiplier.rowCount)
      rest[0].dropFirst(portion.rowCount)
      waiting = [premultiplier.premultiply(portion)]
    } else {
      if rest.isEmpty { return false }
      waiting = rest
      rest = []
    }
    return true
  }

  private mutating func mergedRows() throws(PipelineError) -> Strip.Rows {
    do throws(CodecError) { return try merger?.read() ?? .none } catch { throw PipelineError(error) }
  }

  /// Resamples the offered rows, alternating between planes so that none runs far ahead of the others.
  /// - Returns: Whether all offered rows were processed; `false` if enough output is waiting.
  private mutating func resample(next: NextStage) throws(PipelineError) -> Bool {
    while true {
      if flow?.isFull == true { return false }
      var isIdle = true
      var finished = waiting
      for (index, plane) in planes.enumerated() {
        let taken = plane.push(waiting[index])
        waiting[index].dropFirst(taken)
        finished[index] = plane.read()
        if taken > 0 || !finished[index].isEmpty { isIdle = false }
      }
      if isIdle { return true }
      if finished.contains(where: { !$0.isEmpty }) { try next(Strip(format: format, rows: finished)) }
    }
  }

  mutating func endFrame(next: NextStage) throws(PipelineError) {
    (rest, waiting) = ([], [])
    merger?.reset()
    for plane in planes { plane.reset() }
    for index in windows.indices { windows[index].reset() }
  }

  /// Whether all rows of the image's window have been processed.
  var isDone: Bool { windows.allSatisfy(\.isPassed) }

  func describe(_ attributes: inout StageClock.Attributes) {
    let size = plan.storedOutputSize
    attributes["imageworker.width"] = .int64(Int64(size.width))
    attributes["imageworker.height"] = .int64(Int64(size.height))
    attributes["imageworker.pixels"] = .int64(Int64(size.pixelCount))
    attributes["imageworker.skipped"] = .bool(planes.isEmpty)
    if !plan.hidden.isEmpty { attributes["imageworker.hidden_regions"] = .int64(Int64(plan.hidden.count)) }
    if !plan.faces.isEmpty { attributes["imageworker.faces"] = .int64(Int64(plan.faces.count)) }
  }
}

/// The geometry and the arithmetic with which rows of a layout are resampled.
private struct Resizing {
  typealias Axes = (horizontal: AxisGeometry, vertical: AxisGeometry)

  let resampling: Resampling
  /// Whether what is displayed as rows is stored as columns.
  let columnsFirst: Bool
  /// Whether planes are merged first.
  let isMerged: Bool
  /// The format of the resampled rows.
  let format: PixelFormat
  /// The part of each plane that is resampled.
  let windows: [PlaneWindow]
  /// The axes of each plane.
  let axes: [Axes]

  init(_ plan: Plan, _ decoded: PixelLayout) {
    columnsFirst = plan.orientation.swapsAxes
    resampling =
      switch decoded.format {
      // Where nothing is mixed, 8 bits would round colors that are multiplied by alpha.
      case .rgba8 where !plan.framing.isResampled: .stored
      case .gray8, .rgb8, .rgba8, .ycc8: plan.resampling
      case .cmyk8, .gray16, .rgb16, .rgba16, .premultipliedRGBA16:
        plan.resampling == .pillow ? .stored : plan.resampling
      }
    isMerged = resampling != .stored && decoded.format == .ycc8
    let source = isMerged ? PixelLayout(format: .rgb8, planes: [decoded.mergedPlane]) : decoded
    format = source.format.hasAlpha && resampling == .stored ? .premultipliedRGBA16 : source.format
    let window = plan.storedSource
    let windows = source.planes.map {
      PlaneWindow(
        $0, x: window.x, y: window.y, width: window.width, height: window.height,
        isWhole: window == Window(plan.storedSize), pixelByteCount: source.format.pixelByteCount)
    }
    self.windows = windows
    axes = source.planes.enumerated().map { index, plane in
      Self.axes(plan, plane, windows[index], isChroma: index > 0)
    }
  }

  private static func axes(_ plan: Plan, _ plane: PlaneLayout, _ window: PlaneWindow, isChroma: Bool) -> Axes {
    let (target, part, source) = (plan.storedOutputSize, plan.storedWindow, plan.storedSource)
    // Chroma is resampled directly to the size at which it is encoded.
    var scale = isChroma && plan.encoder.pixelFormat == .ycc8 ? plan.storedChromaScale : (horizontal: 1, vertical: 1)
    // The only sample of a side of one pixel lies in the middle of that pixel, not at its end.
    if target.width == 1 { scale.horizontal = 1 }
    if target.height == 1 { scale.vertical = 1 }
    let enlargement = AxisGeometry.Enlargement(isChroma: isChroma, width: plane.width)
    var horizontal = AxisGeometry(
      sourceCount: window.columnCount, sourceScale: plane.horizontalScale, sourceLength: part.width,
      sourceStart: window.columnOffset + (part.x - source.x) * plane.horizontalScale,
      destinationScale: scale.horizontal, destinationLength: target.width,
      isReversed: plan.orientation.reversesColumns, kernel: plan.kernel, enlargement: enlargement)
    var vertical = AxisGeometry(
      sourceCount: window.rowCount, sourceScale: plane.verticalScale, sourceLength: part.height,
      sourceStart: window.rowOffset + (part.y - source.y) * plane.verticalScale, destinationScale: scale.vertical,
      destinationLength: target.height,
      isReversed: plan.orientation.reversesRows, kernel: plan.kernel, enlargement: enlargement)
    // For a result with full-resolution chroma, subsampled chroma is doubled as decoders do it: a sharper enlargement
    // scores lower in measurements. An image that is decoded at a reduced size has already lost more detail than that
    // affects.
    let mayDouble = isChroma && plan.decodeScale == 8 && enlargement == .linear && plan.kernel == .lanczos3
    horizontal.isDoubled =
      mayDouble && scale.horizontal == 1 && plane.horizontalScale == 0.5 && horizontal.ratio > 0.5
    vertical.isDoubled = mayDouble && scale.vertical == 1 && plane.verticalScale == 0.5 && vertical.ratio > 0.5
    // Compensates for the decoder's low-pass. The value is measured; see Benchmarks/results/shrink-on-load.md. At 1/8, a
    // sample is the mean of its block, which attenuates fine detail. The other reduced transforms hardly do.
    horizontal.emphasis = plan.decodeScale == 1 ? 1.0 / 16 : 0
    vertical.emphasis = horizontal.emphasis
    return (horizontal, vertical)
  }

  /// Whether the rows remain as they are.
  var isIdentity: Bool {
    !isMerged && axes.allSatisfy { $0.horizontal.isIdentity && $0.vertical.isIdentity }
      && windows.allSatisfy(\.isWhole)
  }

  /// The layout of the resampled rows.
  var layout: PixelLayout {
    PixelLayout(
      format: format,
      planes: axes.map {
        PlaneLayout(width: $0.horizontal.destinationCount, height: $0.vertical.destinationCount)
      })
  }
}
