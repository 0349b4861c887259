internal import ImageCodecs
internal import ImageKernels
internal import Tracing

/// Decodes an image to the rows of an overlay: of the size, orientation and colors of its plan.
struct OverlayRows: ~Copyable {
  private typealias Resized = Then<Listed<ResizeStage>, Listed<ColorStage>>
  private typealias Colored = Then<Then<Resized, Listed<ProfileStage>>, Listed<ColorStage>>
  private typealias Stages = Then<Colored, Listed<OrientStage>>

  private var stages: Stages
  private let format: PixelFormat

  /// - `plan`: the plan of a PNG result.
  init(_ plan: Plan) {
    format = plan.encoder.pixelFormat
    stages = Listed(ResizeStage(plan))
      .then(ColorStage(plan, to: plan.profileFormat))
      .then(ProfileStage(plan))
      .then(ColorStage(plan, to: plan.encoder.pixelFormat))
      .then(OrientStage(plan), when: plan.orientation != .up)
  }

  /// Returns an upper bound of the bytes that the stages charge.
  func estimatedByteCount(_ layout: PixelLayout) -> Int {
    var layout = layout
    return stages.estimatedByteCount(&layout)
  }

  /// Decodes the first frame of a file.
  /// - Parameters:
  ///   - bytes: The whole file.
  ///   - drawing: The size and the colors of the overlay.
  ///   - limits: The limits of the image on which it is drawn.
  ///   - budget: The budget of that image.
  ///   - allowance: Checked for each strip.
  /// - Returns: The pixels, which are charged for as long as the image lives.
  /// - Throws: The errors of decoding the file.
  static func pixels(
    _ bytes: RawSpan, _ drawing: PlannedOverlay.Drawing, limits: ImageLimits, budget: ImageBudget,
    allowance: WorkAllowance
  ) throws(PipelineError) -> OverlayPixels {
    var reader = ImageReader(overlayLimits: limits, budget: budget)
    var consumed = try reader.readOverlay(bytes)
    let plan = try reader.plan(PlannedOverlay.decoding(drawing))
    let target = TraceTarget(tracer: NoOpTracer(), context: .topLevel)
    var decode = try DecodeStage(reader, plans: [plan], tracing: target)
    var rows = OverlayRows(plan)
    let context = StageContext(
      budget: budget, allowance: allowance, clock: StageClock(tracing: target), flow: ByteFlow(),
      conversions: decode.conversions, overlays: [])
    var layout = decode.layout
    let (width, height) = (drawing.size.width, drawing.size.height)
    do throws(CodecError) {
      _ = try rows.stages.start(&layout, context)
      try budget.charge(OverlayPixels.byteCount(width: width, height: height))
    } catch { throw PipelineError(error) }
    var pixels = OverlayPixels(width: width, height: height)
    let (format, opacity) = (rows.format, drawing.opacity)
    func append(_ strip: borrowing Strip) { pixels.append(strip.plane(0), format: format, opacity: opacity) }
    var frame = decode.decoder.frame
    try rows.stages.beginFrame(&frame, next: append)
    while true {
      try allowance.check()
      let event = try decode.read(bytes.extracting(droppingFirst: consumed), isLast: true, consumed: &consumed)
      if event == .needsInput { throw PipelineError(.truncatedImage, "the image is truncated") }
      if event != .stripReady { break }
      try decode.decoder.withStrip { (decoded) throws(PipelineError) in
        try rows.stages.push(decoded, next: append)
      }
    }
    try rows.stages.endFrame(next: append)
    try decode.checkWholeness(plan)
    if !drawing.profile.isEmpty { pixels.convertColors(to: drawing.profile, budget: budget) }
    return pixels
  }
}

extension ImageReader {
  /// Creates a reader for an overlay of an image, to whose budget it is charged.
  ///
  /// Overlays are not spilled, because another process allows spill files for the image itself only.
  init(overlayLimits: ImageLimits, budget: ImageBudget) {
    var limits = overlayLimits
    limits.spill = nil
    self.init(limits: limits, budget: budget)
  }

  /// Reads the header of a file that is wholly known.
  /// - Returns: The number of bytes that were consumed.
  mutating func readOverlay(_ bytes: RawSpan) throws(PipelineError) -> Int {
    let (isComplete, consumed) = try push(bytes, isLast: true)
    guard isComplete else { throw PipelineError(.truncatedImage, "the image is truncated") }
    return consumed
  }
}
