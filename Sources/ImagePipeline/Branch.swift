internal import ImageCodecs

/// The way of one rendition from decoded rows to compressed bytes, strip by strip.
///
/// A class because a picture has any number of them, and stages can't be copied.
final class Branch {
  // The stages, in the order in which the data passes them.
  private var resize: ResizeStage
  private var color: ColorStage
  private var profile: ProfileStage
  private var filter: FilterStage
  private var flatten: ColorStage
  private var orient: OrientStage
  private var pad: PadStage
  private var encode: EncodeStage

  let plan: Plan
  private let budget: PictureBudget

  init(
    plan: Plan, decode: borrowing DecodeStage, budget: PictureBudget, tracing: TraceTarget
  ) throws(PipelineError) {
    self.plan = plan
    self.budget = budget
    resize = try ResizeStage(plan: plan, source: decode.layout, budget: budget, tracing: tracing)
    color = try ColorStage(plan: plan, input: resize.outputFormat, output: plan.profileFormat, budget: budget)
    profile = try ProfileStage(plan: plan, conversion: decode.conversion(of: plan.profileFormat), budget: budget)
    filter = try FilterStage(plan: plan, budget: budget, tracing: tracing)
    flatten = try ColorStage(
      plan: plan, input: plan.filterFormat, output: plan.encoder.pixelFormat, budget: budget)
    orient = try OrientStage(plan: plan, budget: budget)
    pad = try PadStage(plan: plan, budget: budget)
    encode = try EncodeStage(plan: plan, budget: budget, tracing: tracing)
  }

  /// Takes the next decoded rows and gives what they complete of the result.
  func push(_ decoded: borrowing Strip, output: (RawSpan) -> Void) throws(PipelineError) {
    try resize.push(decoded) { (resized) throws(PipelineError) in
      let (began, filtered) = (encode.meter.begin(), filter.meter.busy)
      try color.push(resized) { (colored) throws(PipelineError) in
        try profile.push(colored) { (converted) throws(PipelineError) in
          try filter.push(converted) { (filtered) throws(PipelineError) in
            try flatten.push(filtered) { (flat) throws(PipelineError) in
              try orient.push(flat) { (upright) throws(PipelineError) in
                try pad.push(upright) { (padded) throws(PipelineError) in
                  try encode.push(padded, output)
                }
              }
            }
          }
        }
      }
      encode.meter.end(began, excluding: filter.meter.busy - filtered)
    }
  }

  /// Keeps a share of what the stages' meters counted since they were settled last.
  func settle(_ share: Double) {
    resize.meter.settle(share)
    filter.meter.settle(share)
    encode.meter.settle(share)
  }

  /// Whether rows that still come are outside of what is taken of the picture.
  var isBehindWindow: Bool { resize.isBehindWindow }

  /// Gives the rest of the result.
  /// - `lateRights`: artist and copyright that were found after the result was begun without them.
  func finish(
    lateRights: [UInt8], _ cancellation: Cancellation, output: (RawSpan) -> Void
  ) throws(PipelineError) {
    resize.finish()
    filter.finish()
    let began = encode.meter.begin()
    try orient.finish { (upright) throws(PipelineError) in
      try cancellation.check()
      try pad.push(upright) { (padded) throws(PipelineError) in
        try encode.push(padded, output)
      }
    }
    try pad.finish { (padded) throws(PipelineError) in
      try encode.push(padded, output)
    }
    try encode.finish(lateRights: lateRights, cancellation, output)
    encode.meter.end(began)
  }

  /// Ends the last of the spans, once its time is settled.
  func finishSpan() { encode.finishSpan(peakMemory: budget.peak) }

  /// What became of the rendition, complete but for how long the picture waited and took.
  func report(_ decode: borrowing DecodeStage) -> ProcessingReport {
    var timings = StageTimings()
    timings.decode = decode.meter.busy
    timings.resize = resize.meter.busy
    timings.filter = filter.meter.busy
    timings.encode = encode.meter.busy
    var output = ImageInfo(plan)
    output.size = PixelSize(width: encode.options.width, height: encode.options.height)
    let smaller = "the result was made \(output.size) instead of \(plan.outputSize), to keep max_bytes"
    return ProcessingReport(
      input: plan.input, output: output, inputByteCount: decode.inputByteCount,
      outputByteCount: encode.outputByteCount, timings: timings, peakMemoryByteCount: UInt64(budget.peak),
      warnings: plan.warnings + decode.warnings + (output.size == plan.outputSize ? [] : [smaller]),
      compressionQuality: encode.options.isLossy ? Double(encode.options.quality) / 100 : nil)
  }
}
