internal import CPixels
internal import ImageCodecs
internal import Tracing

/// Decoded rows to rows of the result's size, plane by plane.
///
/// Pictures with alpha are premultiplied on the way in, so that the colour behind transparent pixels never shows.
/// Where no plane changes its size, strips pass as they are.
struct ResizeStage: ~Copyable {
  /// What the next stage is given.
  let outputFormat: PixelFormat
  private let planes: [PlaneResizer]
  private var windows: [PlaneWindow]
  private let premultiplier: Premultiplier?
  private let plan: Plan
  var meter: StageMeter

  init(plan: Plan, source: PixelLayout, budget: PictureBudget, tracing: TraceTarget) throws(PipelineError) {
    var meter = StageMeter("resize", tracing: tracing)
    let began = meter.begin()
    let windows = Self.windows(plan: plan, source: source)
    let axes = Self.axes(plan: plan, source: source, windows: windows)
    let isSkipped = Self.isIdentity(axes, windows)
    let needsPremultiplying = !isSkipped && source.format.hasAlpha
    let format: PixelFormat = needsPremultiplying ? .premultipliedRGBA16 : source.format
    let planes = try withCodecErrors { () throws(CodecError) in
      var planes: [PlaneResizer] = []
      for axis in axes where !isSkipped {
        planes.append(
          try PlaneResizer(horizontal: axis.horizontal, vertical: axis.vertical, format: format, budget: budget))
      }
      return planes
    }
    let premultiplier = try withCodecErrors { () throws(CodecError) in
      needsPremultiplying ? try Premultiplier(source.format, width: windows[0].columnCount, budget: budget) : nil
    }
    meter.end(began)
    self.plan = plan
    self.planes = planes
    self.windows = windows
    self.premultiplier = premultiplier
    outputFormat = format
    self.meter = meter
  }

  /// Resamples the strip's rows and hands on what they complete.
  mutating func push(
    _ strip: borrowing Strip, next: (borrowing Strip) throws(PipelineError) -> Void
  ) throws(PipelineError) {
    guard !planes.isEmpty else { return try next(strip) }
    if let premultiplier {
      let all = windows[0].take(strip.plane(0))
      for portion in all.portions(of: Premultiplier.rowCount) {
        let began = meter.begin()
        let rows = premultiplier.premultiply(portion)
        meter.end(began)
        try push([rows], next: next)
      }
    } else {
      var rows: [Strip.Rows] = []
      for index in planes.indices { rows.append(windows[index].take(strip.plane(index))) }
      try push(rows, next: next)
    }
  }

  /// Planes take turns, so that none runs far ahead of the others.
  private mutating func push(
    _ input: [Strip.Rows], next: (borrowing Strip) throws(PipelineError) -> Void
  ) throws(PipelineError) {
    var waiting = input
    while true {
      let began = meter.begin()
      var isIdle = true
      var finished = waiting
      for (index, plane) in planes.enumerated() {
        let taken = plane.push(waiting[index])
        waiting[index].dropFirst(taken)
        finished[index] = plane.read()
        if taken > 0 || finished[index].rowCount > 0 { isIdle = false }
      }
      meter.end(began)
      if isIdle { return }
      if finished.contains(where: { $0.rowCount > 0 }) { try next(Strip(format: outputFormat, rows: finished)) }
    }
  }

  /// Whether rows that still come are outside of what is taken of the picture.
  var isBehindWindow: Bool { !planes.isEmpty && windows.allSatisfy(\.isPassed) }

  mutating func finish() {
    let size = plan.storedOutputSize
    let isSkipped = planes.isEmpty
    meter.finish { attributes in
      attributes["imageworker.width"] = .int64(Int64(size.width))
      attributes["imageworker.height"] = .int64(Int64(size.height))
      attributes["imageworker.pixels"] = .int64(Int64(size.pixelCount))
      attributes["imageworker.skipped"] = .bool(isSkipped)
    }
  }

  private static func axes(
    plan: Plan, source: PixelLayout, windows: [PlaneWindow]
  ) -> [(horizontal: AxisGeometry, vertical: AxisGeometry)] {
    let target = plan.storedOutputSize
    return source.planes.enumerated().map { index, plane in
      // Chroma goes straight to the size at which it is encoded.
      let scale = index > 0 && plan.encoder.pixelFormat == .ycc8 ? plan.storedChromaScale : (horizontal: 1, vertical: 1)
      let enlargement = AxisGeometry.Enlargement(isChroma: index > 0, width: plane.width)
      let window = windows[index]
      var horizontal = AxisGeometry(
        sourceCount: window.columnCount, sourceScale: plane.horizontalScale, sourceLength: plan.storedWindow.width,
        sourceStart: window.columnOffset, destinationScale: scale.horizontal, destinationLength: target.width,
        isReversed: plan.orientation.reversesColumns, enlargement: enlargement)
      var vertical = AxisGeometry(
        sourceCount: window.rowCount, sourceScale: plane.verticalScale, sourceLength: plan.storedWindow.height,
        sourceStart: window.rowOffset, destinationScale: scale.vertical, destinationLength: target.height,
        isReversed: plan.orientation.reversesRows, enlargement: enlargement)
      // Chroma of a result that has as much of it as of luma: sharper than what decoders make of it, it scores less.
      // Of a picture that is decoded at a reduced size, it has lost more than that already.
      let mayDouble = index > 0 && plan.decodeScale == 8 && enlargement == .linear
      horizontal.isDoubled =
        mayDouble && scale.horizontal == 1 && plane.horizontalScale == 0.5 && horizontal.ratio > 0.5
      vertical.isDoubled = mayDouble && scale.vertical == 1 && plane.verticalScale == 0.5 && vertical.ratio > 0.5
      horizontal.emphasis = Self.emphasis(decodeScale: plan.decodeScale)
      vertical.emphasis = horizontal.emphasis
      return (horizontal, vertical)
    }
  }

  /// What makes up for the decoder's low-pass, by measurement: see "Shrinking on load" in Design.md.
  ///
  /// At 1/8 a sample is the mean of its block, which dims what is finer. The other reduced transforms hardly do.
  private static func emphasis(decodeScale: Int) -> Double { decodeScale == 1 ? 1.0 / 16 : 0 }

  /// An upper bound of what this stage charges, where the decoder gives `source`.
  static func estimatedByteCount(_ plan: Plan, source: PixelLayout) -> Int {
    let format: PixelFormat = source.format.hasAlpha ? .premultipliedRGBA16 : source.format
    let windows = windows(plan: plan, source: source)
    let axes = axes(plan: plan, source: source, windows: windows)
    if isIdentity(axes, windows) { return 0 }
    let planes = axes.reduce(0) { sum, axis in
      sum + PlaneResizer.byteCount(horizontal: axis.horizontal, vertical: axis.vertical, format: format)
    }
    return planes + (source.format.hasAlpha ? Premultiplier.byteCount(width: windows[0].columnCount) : 0)
  }

  private static func windows(plan: Plan, source: PixelLayout) -> [PlaneWindow] {
    source.planes.map {
      PlaneWindow($0, plan.storedWindow, of: plan.storedSize, pixelByteCount: source.format.pixelByteCount)
    }
  }

  private static func isIdentity(
    _ axes: [(horizontal: AxisGeometry, vertical: AxisGeometry)], _ windows: [PlaneWindow]
  ) -> Bool {
    axes.allSatisfy { $0.horizontal.isIdentity && $0.vertical.isIdentity } && windows.allSatisfy(\.isWhole)
  }
}

/// Premultiplies a few rows at a time into a buffer of its own.
private final class Premultiplier {
  static let rowCount = 8

  private let buffer: PixelBuffer
  private let format: PixelFormat
  private let width: Int

  /// - `format`: `rgba8` or `rgba16`.
  init(_ format: PixelFormat, width: Int, budget: PictureBudget) throws(CodecError) {
    self.format = format
    self.width = width
    buffer = try PixelBuffer(byteCount: Self.byteCount(width: width), budget: budget)
  }

  static func byteCount(width: Int) -> Int {
    width * PixelFormat.premultipliedRGBA16.pixelByteCount * rowCount
  }

  /// At most `rowCount` rows; the result is valid until the next call.
  func premultiply(_ rows: Strip.Rows) -> Strip.Rows {
    let stride = width * PixelFormat.premultipliedRGBA16.pixelByteCount
    for row in 0..<rows.rowCount {
      let premultiplied = (buffer.base + row * stride).assumingMemoryBound(to: UInt16.self)
      if format == .rgba16 {
        cpixels_premultiply_deep(rows.deepRow(row), premultiplied, width)
      } else {
        cpixels_premultiply(rows.row(row), premultiplied, width, CPIXELS_ISA_BEST)
      }
    }
    return Strip.Rows(base: UnsafeRawPointer(buffer.base), rowStride: stride, rowCount: rows.rowCount)
  }
}
