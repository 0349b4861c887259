internal import ImageCodecs

/// The way of one picture from its bytes to its compressed result, strip by strip.
///
/// Bytes are pushed in, in any portions; compressed bytes come out during the same calls. At no time is the whole
/// picture held, unless a stage that says so needs it. A pipeline that threw is over.
package struct Pipeline: ~Copyable {
  // The stages, in the order in which the data passes them.
  private var decode: DecodeStage
  private var resize: ResizeStage
  private var color: ColorStage
  private var profile: ProfileStage
  private var filter: FilterStage
  private var flatten: ColorStage
  private var orient: OrientStage
  private var pad: PadStage
  private var encode: EncodeStage

  package let plan: Plan
  private let budget: PictureBudget
  private let cancellation: Cancellation
  private var clock: WorkClock

  /// Turns a reader whose header is complete into the pipeline of its picture.
  package init(
    _ reader: consuming PictureReader, plan: Plan, cancellation: Cancellation, tracing: TraceTarget = TraceTarget()
  ) throws(PipelineError) {
    let clock = WorkClock()
    let budget = reader.budget
    let decode = try DecodeStage(reader, plan: plan, tracing: tracing)
    let resize = try ResizeStage(plan: plan, source: decode.layout, budget: budget, tracing: tracing)
    let color = try ColorStage(plan: plan, input: resize.outputFormat, output: plan.profileFormat, budget: budget)
    let profile = try ProfileStage(plan: plan, conversion: decode.conversion, budget: budget)
    let filter = try FilterStage(plan: plan, budget: budget, tracing: tracing)
    let flatten = try ColorStage(
      plan: plan, input: plan.filterFormat, output: plan.encoder.pixelFormat, budget: budget)
    let orient = try OrientStage(plan: plan, budget: budget)
    let pad = try PadStage(plan: plan, budget: budget)
    let encode = try EncodeStage(plan: plan, budget: budget, tracing: tracing)
    self.decode = decode
    self.resize = resize
    self.color = color
    self.profile = profile
    self.filter = filter
    self.flatten = flatten
    self.orient = orient
    self.pad = pad
    self.encode = encode
    self.budget = budget
    self.plan = plan
    self.cancellation = cancellation
    self.clock = clock
    settle()
  }

  /// Takes from the stages' times those in which this thread waited for a CPU.
  private mutating func settle() {
    // What libheif's decoders and encoders do on threads of their own is their stages' work too.
    let hasThreads = [plan.input.format, plan.outputInfo.format].contains { $0 == "avif" || $0 == "heic" }
    let share = hasThreads ? 1 : clock.share()
    decode.meter.settle(share)
    resize.meter.settle(share)
    filter.meter.settle(share)
    encode.meter.settle(share)
  }

  /// Takes the next bytes of the picture and gives what they complete of the result.
  /// - `isLast`: no byte follows these.
  /// - `output`: called with compressed bytes, which are lent for the call.
  /// - Returns: whether the result is complete. Bytes after a complete picture are ignored.
  /// - Throws: `corruptImage`, `truncatedImage`, `limitExceeded`, `cancelled`.
  package mutating func push(
    _ bytes: RawSpan, isLast: Bool, output: (RawSpan) -> Void
  ) throws(PipelineError) -> Bool {
    clock.begin()
    let isDone = try pushRows(bytes, isLast: isLast, output: output)
    settle()
    return isDone
  }

  private mutating func pushRows(
    _ bytes: RawSpan, isLast: Bool, output: (RawSpan) -> Void
  ) throws(PipelineError) -> Bool {
    var consumed = 0
    while true {
      try cancellation.check()
      switch try decode.read(bytes.extracting(droppingFirst: consumed), isLast: isLast, consumed: &consumed) {
      case .needsInput: return false
      case .stripReady:
        try passStrip(output)
        if resize.isBehindWindow {
          try finish(output)
          return true
        }
      case .done:
        try finish(output)
        return true
      }
      try encode.drain(output)
    }
  }

  private mutating func passStrip(_ output: (RawSpan) -> Void) throws(PipelineError) {
    try decode.withStrip { (decoded) throws(PipelineError) in
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
  }

  private mutating func finish(_ output: (RawSpan) -> Void) throws(PipelineError) {
    settle()
    decode.finish()
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
    let isLate = plan.keepsCopyright && plan.encoder.exif.isEmpty
    try encode.finish(lateRights: isLate ? decode.rights : [], cancellation, output)
    encode.meter.end(began)
    settle()
    encode.finishSpan(peakMemory: budget.peak)
  }

  /// What became of the picture.
  ///
  /// Complete once `push` returned true.
  /// - `queued`: how long the picture waited for admission.
  /// - `total`: from the first byte to the last.
  package func report(queued: Duration, total: Duration) -> ProcessingReport {
    var timings = StageTimings()
    timings.queued = queued
    timings.decode = decode.meter.busy
    timings.resize = resize.meter.busy
    timings.filter = filter.meter.busy
    timings.encode = encode.meter.busy
    timings.total = total
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
