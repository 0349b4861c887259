internal import ImageCodecs

/// The stages of one rendition and their state: turns decoded rows into compressed bytes, strip by strip.
///
/// It is a class because an image can have any number of branches, and encoders cannot be copied.
final class Branch {
  let plan: Plan
  let clock: StageClock
  private var stages: Pipeline.Stages
  private var encode: EncodeStage
  /// Hides the regions of the result; `nil` without any.
  private let mask: RegionMask?
  private let budget: ImageBudget
  private let facts = FactsCollector()
  /// The frame that was begun at the encoder, with the rows that the stages leave out.
  private var frame: ImageFrame?
  /// Whether the stages have begun it, too.
  private var isInFrame = false
  /// Whether the stages have not consumed all rows that the mask has made available.
  private var isMasking = false
  /// The number of frames that were processed.
  private(set) var frameCount = 0
  // The sum of their durations, in nanoseconds.
  private var nanoseconds: UInt64 = 0
  private var playCount = 1
  /// Whether `finish` has been called.
  private(set) var isFinishing = false

  init(
    plan: Plan, decode: borrowing DecodeStage, budget: ImageBudget, allowance: WorkAllowance, flow: ByteFlow,
    overlays: OverlayLoader, tracing: TraceTarget
  ) throws(PipelineError) {
    self.plan = plan
    self.budget = budget
    clock = StageClock(tracing: tracing)
    stages = Pipeline.stages(of: plan)
    encode = EncodeStage(plan)
    var layout = decode.layout
    mask = plan.hidden.isEmpty ? nil : try RegionMask(plan.hidden, layout: layout, budget: budget)
    let interrupted = plan.hasOverlays ? clock.enter(.encode) : nil
    let overlays = try overlays.pixels(of: plan, allowance: allowance)
    if plan.hasOverlays { clock.leave(to: interrupted) }
    let context = StageContext(
      budget: budget, allowance: allowance, clock: clock, flow: flow, conversions: decode.conversions,
      facts: facts, overlays: overlays)
    do throws(CodecError) {
      _ = try stages.start(&layout, context)
      try encode.start(context)
    } catch { throw PipelineError(error) }
  }

  /// Processes the next decoded rows of a frame and emits the output that they complete.
  ///
  /// After a pause, it must be called again with the same rows.
  func push(
    _ decoded: borrowing Strip, of frame: ImageFrame, output: (RawSpan) -> Void
  ) throws(PipelineError) {
    if !isInFrame {
      try begin(frame, output)
      if !isInFrame { return }
    }
    guard let mask else {
      return try stages.push(decoded) { (strip) throws(PipelineError) in try write(strip, output) }
    }
    // After a pause, the stages receive the same rows again.
    if !isMasking { mask.push(decoded) }
    try pushMasked(mask, output: output)
  }

  /// Begins a frame and emits the output that precedes its rows.
  ///
  /// After a pause, it must be called again.
  private func begin(_ decoded: ImageFrame, _ output: (RawSpan) -> Void) throws(PipelineError) {
    if frame == nil { try encode.beginFrame(decoded) }
    frame = decoded
    var begun = decoded
    try stages.beginFrame(&begun) { (strip) throws(PipelineError) in try write(strip, output) }
    if stages.isPaused { return }
    frame = begun
    try repeatRows(begun.leftOutAbove)
    isInFrame = true
    nanoseconds += min(decoded.nanoseconds, .max - nanoseconds)
    playCount = decoded.playCount
  }

  /// Passes decoded rows to the stages once the regions are hidden on them, until the stages pause or there are no more.
  private func pushMasked(_ mask: RegionMask, output: (RawSpan) -> Void) throws(PipelineError) {
    while true {
      if !isMasking {
        let interrupted = clock.enter(.resize)
        defer { clock.leave(to: interrupted) }
        isMasking = try mask.advance()
      }
      guard isMasking else { return }
      try stages.push(Strip(format: mask.layout.format, rows: mask.rows)) { (strip) throws(PipelineError) in
        try write(strip, output)
      }
      if isPaused { return }
      isMasking = false
    }
  }

  private func write(_ strip: borrowing Strip, _ output: (RawSpan) -> Void) throws(PipelineError) {
    let interrupted = clock.enter(.encode)
    defer { clock.leave(to: interrupted) }
    try encode.push(strip, output)
  }

  /// Lets the encoder write rows that the stages leave out, as they are those of the frame before.
  private func repeatRows(_ count: Int) throws(PipelineError) {
    guard count > 0 else { return }
    let interrupted = clock.enter(.encode)
    defer { clock.leave(to: interrupted) }
    try encode.repeatRows(count)
  }

  /// Ends the frame, if one has begun, and emits the output that follows its rows.
  ///
  /// After a pause, it must be called again.
  func endFrame(output: (RawSpan) -> Void) throws(PipelineError) {
    guard isInFrame, let frame else { return }
    if let mask, !stages.isDone {
      mask.isFinished = true
      try pushMasked(mask, output: output)
      if isMasking { return }
    }
    try stages.endFrame { (strip) throws(PipelineError) in try write(strip, output) }
    if stages.isPaused { return }
    mask?.reset()
    isMasking = false
    try repeatRows(frame.leftOutBelow)
    let interrupted = clock.enter(.encode)
    defer { clock.leave(to: interrupted) }
    try encode.endFrame()
    (self.frame, isInFrame) = (nil, false)
    frameCount += 1
  }

  /// Whether the result needs nothing more of the image: all rows of its only frame have been processed, and the size of
  /// the image does not matter.
  var isDone: Bool { stages.isDone && plan.neverLarger == nil && !plan.frames.isAnimation }

  /// Whether the last call paused because enough output is waiting.
  var isPaused: Bool { stages.isPaused || encode.isPaused }

  /// Emits the rest of the result.
  ///
  /// After a pause, it must be called again.
  func finish(_ end: ImageEnd, output: (RawSpan) -> Void) throws(PipelineError) {
    isFinishing = true
    try endFrame(output: output)
    if isInFrame { return }
    stages.finishSpan()
    let interrupted = clock.enter(.encode)
    defer { clock.leave(to: interrupted) }
    try encode.finish(end, output)
  }

  /// Ends the span of the encoder and returns the report of the rendition, without the queued time and the total time,
  /// which only the caller knows.
  func report(_ decode: borrowing DecodeStage) -> ProcessingReport {
    clock.finish(.encode) { encode.describe(&$0) }
    var timings = clock.timings
    timings.decode = decode.clock.timings.decode + decode.analysisTime
    let options = encode.options
    var (input, output) = (plan.input, ImageInfo(plan))
    decode.describeFrames(of: &input)
    output.noteFormat(options.format)
    output.hasAlpha = options.pixelFormat.hasAlpha
    output.frameCount = encode.frameCount
    if frameCount > 1 {
      (output.duration, output.playCount) = (.nanoseconds(Int64(clamping: nanoseconds)), playCount)
      if input.frameCount == frameCount { input.duration = output.duration }
    }
    output.size = PixelSize(width: options.width, height: options.height)
    var warnings = plan.warnings + decode.warnings
    if output.size != plan.outputSize {
      warnings.append(.reducedSize(output.size, planned: plan.outputSize))
    }
    if let target = plan.byteLimit?.similarity { warnings += target.warnings(encode.similarity, options) }
    if let rule = plan.byteLimit?.choice == nil ? plan.neverLarger : plan.neverLarger?.applied(to: options) {
      warnings += rule.warnings(
        options, requested: plan.encoder, byteCount: encode.outputByteCount, inputByteCount: decode.inputByteCount)
    }
    return ProcessingReport(
      input: input, output: output, inputByteCount: decode.inputByteCount,
      outputByteCount: encode.outputByteCount, timings: timings, peakMemoryByteCount: UInt64(budget.peak),
      warnings: warnings, compressionQuality: options.reportedQuality,
      similarity: encode.similarity, formatTrials: encode.formatTrials, facts: facts.facts, crop: plan.crop,
      hiddenRegions: plan.hiddenRegions, faces: plan.faces)
  }
}
