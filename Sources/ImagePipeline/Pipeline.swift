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

/// The way of one picture from its bytes to its compressed results, strip by strip.
///
/// Bytes are pushed in, in any portions; compressed bytes come out during the same calls. The picture is decoded once,
/// and each strip passes through the branch of every rendition. At no time is the whole picture held, unless a stage that
/// says so needs it. A pipeline that threw is over.
package struct Pipeline: ~Copyable {
  /// What became of one rendition.
  package enum Outcome: Sendable {
    case working
    /// The report lacks what only the caller knows: how long the picture waited, and how long it took.
    case finished(ProcessingReport)
    case failed(PipelineError)
  }

  private enum Rendition {
    case working(Branch)
    case ended(Outcome)
  }

  private var decode: DecodeStage
  private var renditions: [Rendition]
  private var workingCount: Int
  private let cancellation: Cancellation
  private var clock: WorkClock
  // What a library does on threads of its own is its stage's work too.
  private let hasThreads: Bool

  /// Turns a reader whose header is complete into the pipeline of its picture.
  ///
  /// - `plan`: at least one of its renditions can be made.
  /// - `renditionIDs`: what traces call the renditions, in the plan's order; empty where there is but one result.
  /// - Throws: an error of the picture; that of a rendition is its outcome.
  package init(
    _ reader: consuming PictureReader, plan: PicturePlan, renditionIDs: [String] = [], cancellation: Cancellation,
    tracing: TraceTarget = TraceTarget()
  ) throws(PipelineError) {
    let clock = WorkClock()
    let budget = reader.budget
    let decode = try DecodeStage(reader, plans: plan.plans, tracing: tracing)
    var renditions: [Rendition] = []
    var workingCount = 0
    for (index, plan) in plan.renditions.enumerated() {
      let tracing = tracing.of(rendition: renditionIDs.isEmpty ? nil : renditionIDs[index])
      do throws(PipelineError) {
        renditions.append(
          .working(
            try Branch(
              plan: plan.get(), decode: decode, budget: budget, cancellation: cancellation, tracing: tracing)))
        workingCount += 1
      } catch {
        renditions.append(.ended(.failed(error)))
      }
    }
    self.decode = decode
    self.renditions = renditions
    self.workingCount = workingCount
    self.cancellation = cancellation
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

  /// Takes the next bytes of the picture and gives what they complete of the results.
  /// - `isLast`: no byte follows these.
  /// - `output`: called with the place of a rendition in the plan and its compressed bytes, which are lent for the call.
  /// - Returns: whether every rendition has ended. Bytes after a complete picture are ignored.
  /// - Throws: `corruptImage`, `truncatedImage`, `limitExceeded`, `cancelled`: errors of the picture.
  package mutating func push(
    _ bytes: RawSpan, isLast: Bool, output: (_ rendition: Int, RawSpan) -> Void
  ) throws(PipelineError) -> Bool {
    clock.begin()
    try pushRows(bytes, isLast: isLast, output)
    settle()
    if workingCount == 0 { decode.finish() }
    return workingCount == 0
  }

  private mutating func pushRows(
    _ bytes: RawSpan, isLast: Bool, _ output: (Int, RawSpan) -> Void
  ) throws(PipelineError) {
    var consumed = 0
    while workingCount > 0 {
      try cancellation.check()
      switch try decode.read(bytes.extracting(droppingFirst: consumed), isLast: isLast, consumed: &consumed) {
      case .needsInput: return
      case .stripReady: try passStrip(output)
      case .done: try finishAll(output)
      }
    }
  }

  /// What became of a rendition, by its place in the plan.
  package func outcome(of index: Int) -> Outcome {
    if case .ended(let outcome) = renditions[index] { outcome } else { .working }
  }

  private mutating func passStrip(_ output: (Int, RawSpan) -> Void) throws(PipelineError) {
    for index in renditions.indices {
      guard case .working(let branch) = renditions[index] else { continue }
      do throws(PipelineError) {
        try decode.withStrip { (decoded) throws(PipelineError) in
          try branch.push(decoded) { output(index, $0) }
        }
        if branch.isDone { try finish(index, branch, output) }
      } catch { try end(index, with: error) }
    }
  }

  private mutating func finishAll(_ output: (Int, RawSpan) -> Void) throws(PipelineError) {
    // Its time and its span end with the last row.
    settle()
    decode.finish()
    for index in renditions.indices {
      guard case .working(let branch) = renditions[index] else { continue }
      do throws(PipelineError) { try finish(index, branch, output) } catch { try end(index, with: error) }
    }
  }

  private mutating func finish(
    _ index: Int, _ branch: Branch, _ output: (Int, RawSpan) -> Void
  ) throws(PipelineError) {
    settle()
    try decode.checkWholeness(branch.plan)
    let isLate = branch.plan.keepsCopyright && branch.plan.encoder.exif.isEmpty
    try branch.finish(lateRights: isLate ? decode.rights : []) { output(index, $0) }
    settle()
    branch.finishSpan()
    renditions[index] = .ended(.finished(branch.report(decode)))
    workingCount -= 1
  }

  /// An error of one rendition ends it alone, unless it is that the caller left.
  private mutating func end(_ index: Int, with error: PipelineError) throws(PipelineError) {
    try cancellation.check()
    renditions[index] = .ended(.failed(error))
    workingCount -= 1
  }
}
