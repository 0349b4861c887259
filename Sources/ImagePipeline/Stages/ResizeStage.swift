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

  /// Returns the arithmetic for rows of `layout`.
  private func resampling(_ layout: PixelLayout) -> Resampling {
    guard plan.resampling == .pillow else { return plan.resampling }
    return switch layout.format {
    case .gray8, .rgb8, .rgba8, .ycc8: .pillow
    case .cmyk8, .gray16, .rgb16, .rgba16, .premultipliedRGBA16: .stored
    }
  }

  /// Returns the layout of the rows that are resampled.
  private func merged(_ layout: PixelLayout) -> PixelLayout {
    guard resampling(layout) != .stored, layout.format == .ycc8 else { return layout }
    return PixelLayout(format: .rgb8, planes: [layout.mergedPlane])
  }

  /// Returns the format of the resampled rows.
  private func resampledFormat(_ source: PixelLayout) -> PixelFormat {
    source.format.hasAlpha && resampling(source) == .stored ? .premultipliedRGBA16 : source.format
  }

  func estimatedByteCount(_ layout: inout PixelLayout) -> Int {
    let (decoded, source) = (layout, merged(layout))
    let format = resampledFormat(source)
    let windows = Self.windows(plan: plan, source: source)
    let axes = Self.axes(plan: plan, source: source, windows: windows)
    let isMerged = decoded.planes.count > source.planes.count
    layout = Self.layout(axes, format)
    if Self.isIdentity(axes, windows), !isMerged { return 0 }
    var sum = axes.reduce(0) { sum, axis in
      sum
        + PlaneResizer.byteCount(
          horizontal: axis.horizontal, vertical: axis.vertical, format: format, resampling: resampling(source))
    }
    if isMerged { sum += PlaneMerger.estimatedByteCount(decoded) }
    guard format == .premultipliedRGBA16 else { return sum }
    return sum + Premultiplier.byteCount(width: windows[0].columnCount, rowCount: Self.premultipliedRowCount)
  }

  mutating func start(_ layout: inout PixelLayout, _ context: borrowing StageContext) throws(PipelineError) -> Bool {
    let (decoded, source) = (layout, merged(layout))
    let windows = Self.windows(plan: plan, source: source)
    let axes = Self.axes(plan: plan, source: source, windows: windows)
    let isMerged = decoded.planes.count > source.planes.count
    guard isMerged || !Self.isIdentity(axes, windows) else { return false }
    let (format, resampling) = (resampledFormat(source), resampling(source))
    planes = try context.allocate { (budget) throws(CodecError) in
      var planes: [PlaneResizer] = []
      for axis in axes {
        planes.append(
          try PlaneResizer(
            horizontal: axis.horizontal, vertical: axis.vertical, format: format, resampling: resampling,
            known: planes.last, budget: budget))
      }
      return planes
    }
    if isMerged {
      merger = try context.allocate { (budget) throws(CodecError) in
        try PlaneMerger(decoded, doubles: true, budget: budget)
      }
    }
    if format == .premultipliedRGBA16 {
      let width = windows[0].columnCount
      premultiplier = try context.allocate { (budget) throws(CodecError) in
        try Premultiplier(source.format, width: width, rowCount: Self.premultipliedRowCount, budget: budget)
      }
    }
    self.windows = windows
    self.format = format
    flow = context.flow
    layout = Self.layout(axes, format)
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
        for index in planes.indices { rest.append(windows[index].take(strip.plane(index))) }
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

  func describe(_ attributes: inout StageMeter.Attributes) {
    let size = plan.storedOutputSize
    attributes["imageworker.width"] = .int64(Int64(size.width))
    attributes["imageworker.height"] = .int64(Int64(size.height))
    attributes["imageworker.pixels"] = .int64(Int64(size.pixelCount))
    attributes["imageworker.skipped"] = .bool(planes.isEmpty)
    if !plan.hidden.isEmpty { attributes["imageworker.hidden_regions"] = .int64(Int64(plan.hidden.count)) }
    if !plan.faces.isEmpty { attributes["imageworker.faces"] = .int64(Int64(plan.faces.count)) }
  }

  private static func axes(
    plan: Plan, source: PixelLayout, windows: [PlaneWindow]
  ) -> [(horizontal: AxisGeometry, vertical: AxisGeometry)] {
    let target = plan.storedOutputSize
    return source.planes.enumerated().map { index, plane in
      // Chroma is resampled directly to the size at which it is encoded.
      let scale = index > 0 && plan.encoder.pixelFormat == .ycc8 ? plan.storedChromaScale : (horizontal: 1, vertical: 1)
      let enlargement = AxisGeometry.Enlargement(isChroma: index > 0, width: plane.width)
      let window = windows[index]
      var horizontal = AxisGeometry(
        sourceCount: window.columnCount, sourceScale: plane.horizontalScale, sourceLength: plan.storedWindow.width,
        sourceStart: window.columnOffset, destinationScale: scale.horizontal, destinationLength: target.width,
        isReversed: plan.orientation.reversesColumns, kernel: plan.kernel, enlargement: enlargement)
      var vertical = AxisGeometry(
        sourceCount: window.rowCount, sourceScale: plane.verticalScale, sourceLength: plan.storedWindow.height,
        sourceStart: window.rowOffset, destinationScale: scale.vertical, destinationLength: target.height,
        isReversed: plan.orientation.reversesRows, kernel: plan.kernel, enlargement: enlargement)
      // For a result with full-resolution chroma, subsampled chroma is doubled as decoders do it: a sharper enlargement
      // scores lower in measurements. An image that is decoded at a reduced size has already lost more detail than that
      // affects.
      let mayDouble = index > 0 && plan.decodeScale == 8 && enlargement == .linear && plan.kernel == .lanczos3
      horizontal.isDoubled =
        mayDouble && scale.horizontal == 1 && plane.horizontalScale == 0.5 && horizontal.ratio > 0.5
      vertical.isDoubled = mayDouble && scale.vertical == 1 && plane.verticalScale == 0.5 && vertical.ratio > 0.5
      horizontal.emphasis = Self.emphasis(decodeScale: plan.decodeScale)
      vertical.emphasis = horizontal.emphasis
      return (horizontal, vertical)
    }
  }

  /// Returns the emphasis that compensates for the decoder's low-pass.
  ///
  /// The value is measured; see Benchmarks/results/shrink-on-load.md. At 1/8, a sample is the mean of its block, which
  /// attenuates fine detail. The other reduced transforms hardly do.
  private static func emphasis(decodeScale: Int) -> Double { decodeScale == 1 ? 1.0 / 16 : 0 }

  /// Returns the layout of the resampled rows.
  private static func layout(
    _ axes: [(horizontal: AxisGeometry, vertical: AxisGeometry)], _ format: PixelFormat
  ) -> PixelLayout {
    PixelLayout(
      format: format,
      planes: axes.map {
        PlaneLayout(width: $0.horizontal.destinationCount, height: $0.vertical.destinationCount)
      })
  }

  private static func windows(plan: Plan, source: PixelLayout) -> [PlaneWindow] {
    let window = plan.storedWindow
    return source.planes.map {
      PlaneWindow(
        $0, x: window.x, y: window.y, width: window.width, height: window.height,
        isWhole: window == Window(plan.storedSize), pixelByteCount: source.format.pixelByteCount)
    }
  }

  private static func isIdentity(
    _ axes: [(horizontal: AxisGeometry, vertical: AxisGeometry)], _ windows: [PlaneWindow]
  ) -> Bool {
    axes.allSatisfy { $0.horizontal.isIdentity && $0.vertical.isIdentity } && windows.allSatisfy(\.isWhole)
  }
}
