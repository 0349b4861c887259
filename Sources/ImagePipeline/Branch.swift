internal import ImageCodecs

/// The way of one rendition from decoded rows to compressed bytes, strip by strip.
///
/// A class because an image has any number of them, and stages can't be copied.
final class Branch {
  let plan: Plan
  private let stages: Pipeline.Stages
  private let clock: StageClock
  private let budget: ImageBudget
  private let allowance: WorkAllowance
  private var isBegun = false
  /// Whether the rest of the result has begun.
  private(set) var isFinishing = false

  init(
    plan: Plan, decode: borrowing DecodeStage, budget: ImageBudget, allowance: WorkAllowance, gauge: OutputGauge,
    tracing: TraceTarget
  ) throws(PipelineError) {
    self.plan = plan
    self.budget = budget
    self.allowance = allowance
    clock = StageClock(tracing: tracing)
    stages = Pipeline.stages(of: plan)
    try stages.start(
      decode.layout,
      StageContext(
        budget: budget, allowance: allowance, clock: clock, gauge: gauge, conversions: decode.conversions))
  }

  /// Takes the next decoded rows and gives what they complete of the result; the same rows again where it paused.
  func push(_ decoded: borrowing Strip, output: (RawSpan) -> Void) throws(PipelineError) {
    if !isBegun {
      try stages.begin(output: output)
      if stages.isPaused { return }
      isBegun = true
    }
    try stages.push(decoded, output: output)
  }

  /// Keeps a share of what the stages' meters counted since they were settled last.
  func settle(_ share: Double) { clock.settle(share) }

  /// Whether rows that still come are outside of what is taken of the image.
  var isDone: Bool { stages.isDone }

  /// Whether the last call stopped because enough output waits.
  var isPaused: Bool { stages.isPaused }

  /// Gives the rest of the result; repeated where it paused.
  /// - `trailingMetadata`: artist and copyright that were found after the result was begun without them.
  func finish(trailingMetadata: [UInt8], output: (RawSpan) -> Void) throws(PipelineError) {
    isFinishing = true
    try stages.finish(trailingMetadata: trailingMetadata, output: output)
  }

  /// Ends the last of the spans, once its time is settled.
  func finishSpan() { stages.finishSpan() }

  /// The outcome of the rendition, complete except for how long the image waited and took.
  func report(_ decode: borrowing DecodeStage) -> ProcessingReport {
    var timings = clock.timings
    timings[.decode] = decode.meter.busy
    let (options, byteCount) = stages.result
    var output = ImageInfo(plan)
    output.size = PixelSize(width: options.width, height: options.height)
    let smaller = "the result is \(output.size) instead of \(plan.outputSize), to fit max_bytes"
    return ProcessingReport(
      input: plan.input, output: output, inputByteCount: decode.inputByteCount,
      outputByteCount: byteCount, timings: timings, peakMemoryByteCount: UInt64(budget.peak),
      warnings: plan.warnings + decode.warnings + (output.size == plan.outputSize ? [] : [smaller]),
      compressionQuality: options.isLossy ? Double(options.quality) / 100 : nil)
  }
}
