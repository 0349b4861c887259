internal import ImageCodecs

extension Pipeline: StageListing {
  /// The stages of a rendition, in the order in which the data passes them.
  ///
  /// Pushing, finishing, the working set, spans and timings follow from this list. A stage that applies only to some plans
  /// names its condition here. The image's decoder comes before them, once for all renditions.
  static func stages(of plan: Plan) -> some StageList {
    DecodedRows()
      .then(ResizeStage(plan))
      .then(ColorStage(plan, to: plan.profileFormat))
      .then(ProfileStage(plan))
      .then(FilterStage(plan), when: !plan.filters.isEmpty)
      .then(ColorStage(plan, to: plan.encoder.pixelFormat))
      .then(OrientStage(plan), when: plan.orientation != .up)
      .then(PadStage(plan), when: plan.framing.isPadded)
      .then(EncodeStage(plan))
  }
}

extension Pipeline {
  /// The names of a rendition's stages, in order.
  package static var stageNames: [String] { Stages.names }
}

/// The way of one image from its bytes to its compressed results, strip by strip.
///
/// Bytes are pushed in, in any portions; compressed bytes come out during the same calls, which pause when enough of them
/// wait. The image is decoded once,
/// and each strip passes through the branch of every rendition. At no time is the whole image held, unless a stage that
/// says so needs it. A pipeline that threw is over.
package struct Pipeline: ~Copyable {
  /// What became of one rendition.
  package enum Outcome: Sendable {
    case working
    /// The report lacks what only the caller knows: how long the image waited, and how long it took.
    case finished(ProcessingReport)
    case failed(PipelineError)
  }

  private enum Rendition {
    case working(Branch)
    case ended(Outcome)
  }

  /// What comes next; from a rendition on where a strip, or the end, was not given to all of them.
  private enum Step {
    case reading
    case passing(from: Int)
    case finishing(from: Int)
  }

  private var decode: DecodeStage
  private var renditions: [Rendition]
  private var workingCount: Int
  private let allowance: WorkAllowance
  private var step = Step.reading
  private let gauge: OutputGauge
  private var clock: WorkClock
  // What a library does on threads of its own is its stage's work too.
  private let hasThreads: Bool

  /// Turns a reader whose header is complete into the pipeline of its image.
  ///
  /// - `plan`: at least one of its renditions can be made.
  /// - `renditionIDs`: what traces call the renditions, in the plan's order; empty where there is but one result.
  /// - Throws: an error of the image; that of a rendition is its outcome.
  package init(
    _ reader: consuming ImageReader, plan: ImagePlan, renditionIDs: [String] = [], cancellation: Cancellation,
    tracing: TraceTarget = TraceTarget()
  ) throws(PipelineError) {
    let clock = WorkClock()
    let budget = reader.budget
    let gauge = OutputGauge()
    let allowance = WorkAllowance(cancellation, limit: reader.limits.maxCPUTime)
    let decode = try DecodeStage(reader, plans: plan.plans, tracing: tracing)
    var renditions: [Rendition] = []
    var workingCount = 0
    for (index, plan) in plan.renditions.enumerated() {
      let tracing = tracing.of(rendition: renditionIDs.isEmpty ? nil : renditionIDs[index])
      do throws(PipelineError) {
        renditions.append(
          .working(
            try Branch(
              plan: plan.get(), decode: decode, budget: budget, allowance: allowance, gauge: gauge,
              tracing: tracing)))
        workingCount += 1
      } catch {
        renditions.append(.ended(.failed(error)))
      }
    }
    self.decode = decode
    self.renditions = renditions
    self.workingCount = workingCount
    self.allowance = allowance
    self.gauge = gauge
    self.clock = clock
    hasThreads = plan.plans.contains(where: \.usesLibraryThreads)
    settle()
  }

  /// Takes from the stages' times those in which this thread waited for a CPU.
  private mutating func settle() {
    let share = hasThreads ? 1 : clock.share()
    decode.meter.settle(share)
    for rendition in renditions { if case .working(let branch) = rendition { branch.settle(share) } }
  }

  /// Takes the next bytes of the image and gives what they complete of the results, until enough of that waits.
  ///
  /// What earlier calls gave is taken to have been read.
  /// - `isLast`: no byte follows these.
  /// - `consumed`: grows by the bytes that need not come again: all of them, unless it paused.
  /// - `output`: called with the place of a rendition in the plan and its compressed bytes, which are lent for the call.
  /// - Throws: `corruptImage`, `truncatedImage`, `limitExceeded`, `cancelled`: errors of the image.
  package mutating func advance(
    _ bytes: RawSpan, isLast: Bool, consumed: inout Int, output: (_ rendition: Int, RawSpan) -> Void
  ) throws(PipelineError) -> PipelineProgress {
    clock.begin()
    allowance.begin()
    gauge.reset()
    var taken = 0
    let gauge = gauge
    let progress = try advanceStep(bytes, isLast: isLast, consumed: &taken) { index, compressed in
      gauge.add(compressed.byteCount)
      output(index, compressed)
    }
    consumed += progress == .paused ? taken : bytes.byteCount
    allowance.end()
    settle()
    if workingCount == 0 { decode.finish() }
    return progress
  }

  private mutating func advanceStep(
    _ bytes: RawSpan, isLast: Bool, consumed: inout Int, _ output: (Int, RawSpan) -> Void
  ) throws(PipelineError) -> PipelineProgress {
    while workingCount > 0 {
      try allowance.check()
      if gauge.isFull { return .paused }
      switch step {
      case .reading:
        switch try decode.read(bytes.extracting(droppingFirst: consumed), isLast: isLast, consumed: &consumed) {
        case .needsInput: return .needsInput
        case .stripReady: step = .passing(from: 0)
        case .done:
          // Its time and its span end with the last row.
          settle()
          decode.finish()
          step = .finishing(from: 0)
        }
      case .passing(let index) where index < renditions.count:
        if try passStrip(to: index, output) { step = .passing(from: index + 1) }
      case .passing: step = .reading
      case .finishing(let index):
        if try finishWhole(index, output) { step = .finishing(from: index + 1) }
      }
    }
    return .done
  }

  /// What became of a rendition, by its place in the plan.
  package func outcome(of index: Int) -> Outcome {
    if case .ended(let outcome) = renditions[index] { outcome } else { .working }
  }

  /// - Returns: whether the rendition took the strip, and ended where it needs no other; `false` where it paused.
  private mutating func passStrip(to index: Int, _ output: (Int, RawSpan) -> Void) throws(PipelineError) -> Bool {
    guard case .working(let branch) = renditions[index] else { return true }
    do throws(PipelineError) {
      if !branch.isFinishing {
        try decode.withStrip { (decoded) throws(PipelineError) in
          try branch.push(decoded) { output(index, $0) }
        }
        if branch.isPaused { return false }
        guard branch.isDone else { return true }
      }
      return try finish(index, branch, output)
    } catch {
      try end(index, with: error)
      return true
    }
  }

  /// Ends a rendition that took every row.
  /// - Returns: whether it has ended; `false` where it paused.
  private mutating func finishWhole(_ index: Int, _ output: (Int, RawSpan) -> Void) throws(PipelineError) -> Bool {
    guard case .working(let branch) = renditions[index] else { return true }
    do throws(PipelineError) { return try finish(index, branch, output) } catch {
      try end(index, with: error)
      return true
    }
  }

  private mutating func finish(
    _ index: Int, _ branch: Branch, _ output: (Int, RawSpan) -> Void
  ) throws(PipelineError) -> Bool {
    settle()
    try decode.checkWholeness(branch.plan)
    let isLate = branch.plan.keepsCopyright && branch.plan.encoder.exif.isEmpty
    try branch.finish(trailingMetadata: isLate ? decode.rights : []) { output(index, $0) }
    settle()
    if branch.isPaused { return false }
    branch.finishSpan()
    renditions[index] = .ended(.finished(branch.report(decode)))
    workingCount -= 1
    return true
  }

  /// An error of one rendition ends it alone, unless the caller left or the image's CPU time is used up.
  private mutating func end(_ index: Int, with error: PipelineError) throws(PipelineError) {
    try allowance.check()
    renditions[index] = .ended(.failed(error))
    workingCount -= 1
  }
}
