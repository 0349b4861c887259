internal import ImageCodecs

extension Pipeline: StageListing {
  /// The stages of a rendition, in the order in which the data passes through them.
  ///
  /// This list determines how strips are pushed and finished, the estimated working set, and the spans and timings that
  /// are reported. A stage that applies only to some plans states its condition here. The image's decoder comes before
  /// these stages and runs once for all renditions; the encoder of the rendition comes after them.
  static func stages(of plan: Plan) -> some Stage {
    Listed(ResizeStage(plan))
      .then(FactsStage(plan), when: plan.factsPlace == .beforeColors)
      .then(ColorStage(plan, to: plan.profileFormat))
      .then(ProfileStage(plan))
      .then(FactsStage(plan), when: plan.factsPlace == .beforeFilters)
      .then(FilterStage(plan), when: !plan.filters.isEmpty)
      .then(ColorStage(plan, to: plan.encoder.pixelFormat))
      .then(OrientStage(plan), when: plan.orientation != .up)
      .then(PadStage(plan), when: plan.framing.isPadded)
      .then(OverlayStage(plan), when: plan.hasOverlays)
  }
}

/// Decodes one image and encodes all of its renditions, strip by strip.
///
/// The image is decoded once, and each decoded strip passes through the branch of every rendition. The whole image is
/// buffered only where a stage documents that it needs this.
package final class Pipeline: ImageRoute {
  private enum Rendition {
    case working(Branch)
    /// The result is complete and has more bytes than have arrived of its image: its report waits until more arrive.
    case oversized(ProcessingReport, remedy: String)
    case ended(RenditionOutcome)
  }

  /// The maximum size in bytes of a result about which nothing can be done, as most of it may be headers.
  static let maxTrivialByteCount: UInt64 = 1024

  /// The next step of the pipeline.
  ///
  /// The associated values give the index of the first rendition that has not received the current strip, the end of a
  /// frame, or the end of the image.
  private enum Step {
    case reading
    case passing(from: Int)
    case endingFrame(from: Int)
    case finishing(from: Int)
  }

  private var decode: DecodeStage
  private var renditions: [Rendition]
  private var workingCount: Int
  /// Counts the CPU time of the work, and decides whether it may continue.
  let allowance: WorkAllowance
  private var step = Step.reading
  private let flow: ByteFlow
  private var clock: WorkClock
  // Whether results depend on the size of the whole file, so that none is finished before its end.
  private let needsSize: Bool
  // Whether a library runs threads of its own, whose CPU time this thread's clock does not measure.
  private let hasThreads: Bool
  // The work on a frame, and the maximum for all of them: see `ImageLimits.maxWorkPixels`.
  private let workPixelCount: UInt64
  private let maxWorkPixels: UInt64

  /// Creates the pipeline of an image from the reader that has read its header.
  ///
  /// An error of a single rendition is not thrown; it becomes the outcome of that rendition.
  /// - Parameters:
  ///   - reader: A reader whose header is complete.
  ///   - plan: The plan of the image, with at least one rendition that can be produced.
  ///   - renditionIDs: The names of the renditions in traces, in the order of the plan; empty for an image with one
  ///     result.
  ///   - cancellation: Stops the work when it is cancelled.
  ///   - tracing: The destination of the spans.
  /// - Throws: An error that affects the whole image.
  package init(
    _ reader: consuming ImageReader, plan: ImagePlan, renditionIDs: [String] = [], cancellation: Cancellation,
    tracing: TraceTarget = TraceTarget()
  ) throws(PipelineError) {
    let clock = WorkClock()
    let budget = reader.budget
    maxWorkPixels = reader.limits.maxWorkPixels
    workPixelCount = plan.workPixelCount
    let flow = ByteFlow()
    let allowance = reader.makeAllowance(cancellation)
    allowance.begin()  // overlays are decoded and drawn here
    let overlays = OverlayLoader(reader.auxiliary, limits: reader.limits, budget: budget)
    let decode = try DecodeStage(reader, plans: plan.plans, tracing: tracing)
    var renditions: [Rendition] = []
    var workingCount = 0
    for (index, plan) in plan.renditions.enumerated() {
      var tracing = tracing
      tracing.renditionID = renditionIDs.isEmpty ? nil : renditionIDs[index]
      do throws(PipelineError) {
        renditions.append(
          .working(
            try Branch(
              plan: plan.get(), decode: decode, budget: budget, allowance: allowance, flow: flow,
              overlays: overlays, tracing: tracing)))
        workingCount += 1
      } catch {
        renditions.append(.ended(.failure(error)))
      }
    }
    allowance.end()
    self.decode = decode
    self.renditions = renditions
    self.workingCount = workingCount
    self.allowance = allowance
    self.flow = flow
    self.clock = clock
    hasThreads = plan.plans.contains(where: \.usesLibraryThreads)
    needsSize = plan.plans.contains { $0.neverLarger != nil }
    settle()
  }

  /// Removes from the stages' times the share in which this thread waited for a CPU.
  private func settle() {
    let share = hasThreads ? 1 : clock.share()
    decode.clock.settle(share)
    for rendition in renditions { if case .working(let branch) = rendition { branch.clock.settle(share) } }
  }

  package func advance(
    _ bytes: RawSpan, isLast: Bool, consumed: inout Int, output: (_ rendition: Int, RawSpan) -> Void
  ) throws(PipelineError) -> PipelineProgress {
    clock = WorkClock()
    allowance.begin()
    flow.waitingByteCount = 0
    flow.receivedByteCount = decode.arrivedByteCount + UInt64(bytes.byteCount)
    flow.isComplete = isLast
    var taken = 0
    let progress = try advanceStep(bytes, isLast: isLast, consumed: &taken) { index, compressed in
      flow.waitingByteCount += compressed.byteCount
      output(index, compressed)
    }
    consumed += progress == .paused ? taken : bytes.byteCount
    allowance.end()
    settle()
    if workingCount == 0 { decode.finish() }
    return progress
  }

  private func advanceStep(
    _ bytes: RawSpan, isLast: Bool, consumed: inout Int, _ output: (Int, RawSpan) -> Void
  ) throws(PipelineError) -> PipelineProgress {
    while workingCount > 0 {
      try allowance.check()
      if flow.isFull { return .paused }
      switch step {
      case .reading:
        switch try decode.read(bytes.extracting(droppingFirst: consumed), isLast: isLast, consumed: &consumed) {
        case .needsInput: return .needsInput
        case .stripReady: step = .passing(from: 0)
        case .frameDone:
          try checkWork()
          step = .endingFrame(from: 0)
        case .done:
          // The decoder's time and its span end with the last row.
          settle()
          decode.finish()
          step = .finishing(from: 0)
        }
      case .passing(let index) where index < renditions.count:
        if try takeStep(index, output) { step = .passing(from: index + 1) }
      case .endingFrame(let index) where index < renditions.count:
        if try takeStep(index, output) { step = .endingFrame(from: index + 1) }
      case .passing, .endingFrame: step = .reading
      case .finishing(let index):
        if needsSize {
          decode.skip(bytes.byteCount - consumed)
          consumed = bytes.byteCount
          guard isLast else { return .needsInput }
        }
        if try takeStep(index, output) { step = .finishing(from: index + 1) }
      }
    }
    return endOversized(bytes, consumed: &consumed)
  }

  /// Checks the work on all frames, of which another one follows.
  private func checkWork() throws(PipelineError) {
    let (work, isOverflow) = workPixelCount.multipliedReportingOverflow(by: UInt64(decode.frameCount + 1))
    guard isOverflow || work > maxWorkPixels else { return }
    throw PipelineError(
      exceeding: "max_work_pixels", limit: maxWorkPixels, value: isOverflow ? .max : work,
      unit: "pixels of results, counted for encoding, scaling and each pass of a filter of each frame")
  }

  /// Ends the renditions whose reports waited for the size of the file, as far as it is known.
  private func endOversized(_ bytes: RawSpan, consumed: inout Int) -> PipelineProgress {
    var progress = PipelineProgress.done
    for index in renditions.indices {
      guard case .oversized(let report, let remedy) = renditions[index] else { continue }
      renditions[index] = compared(report, remedy: remedy)
      if case .oversized = renditions[index] { progress = .needsInput }
    }
    if progress == .needsInput {
      decode.skip(bytes.byteCount - consumed)
      consumed = bytes.byteCount
    }
    return progress
  }

  /// Compares the size of a complete result with that of the file, as far as it is known.
  private func compared(_ report: ProcessingReport, remedy: String?) -> Rendition {
    guard let remedy, report.outputByteCount > max(flow.receivedByteCount, Self.maxTrivialByteCount) else {
      return .ended(.success(report))
    }
    guard flow.isComplete else { return .oversized(report, remedy: remedy) }
    var report = report
    report.warnings.append(
      .largerThanImage(
        byteCount: report.outputByteCount, imageByteCount: flow.receivedByteCount, note: "; \(remedy)"))
    return .ended(.success(report))
  }

  /// Whether every row of the image was decoded, or none is needed any more.
  package var hasWholeImage: Bool {
    switch step {
    case .finishing: true
    case .reading, .passing, .endingFrame: workingCount == 0
    }
  }

  package func outcome(of index: Int) -> RenditionOutcome? {
    if case .ended(let outcome) = renditions[index] { outcome } else { nil }
  }

  /// Lets a rendition take the current step; its error does not end the other renditions.
  /// - Returns: Whether the rendition has done so, or has ended; `false` if it paused.
  /// - Throws: An error if the work was cancelled or the image's CPU time is used up, as that ends all renditions.
  private func takeStep(_ index: Int, _ output: (Int, RawSpan) -> Void) throws(PipelineError) -> Bool {
    guard case .working(let branch) = renditions[index] else { return true }
    do throws(PipelineError) {
      switch step {
      case .passing where !branch.isFinishing:
        let frame = decode.decoder.frame
        try decode.decoder.withStrip { (decoded) throws(PipelineError) in
          try branch.push(decoded, of: frame) { output(index, $0) }
        }
        if branch.isPaused { return false }
        return try branch.isDone ? finish(index, branch, output) : true
      case .endingFrame:
        try branch.endFrame { output(index, $0) }
        return !branch.isPaused
      case .reading, .passing, .finishing: return try finish(index, branch, output)
      }
    } catch {
      try allowance.check()
      renditions[index] = .ended(.failure(error))
      workingCount -= 1
      return true
    }
  }

  /// Finishes a rendition that needs no further rows.
  private func finish(
    _ index: Int, _ branch: Branch, _ output: (Int, RawSpan) -> Void
  ) throws(PipelineError) -> Bool {
    settle()
    try decode.checkWholeness(branch.plan)
    let isLate = branch.plan.keepsCopyright && branch.plan.encoder.metadata.exif.isEmpty
    let end = ImageEnd(trailingMetadata: isLate ? decode.copyright : [], inputByteCount: decode.inputByteCount)
    try branch.finish(end) { output(index, $0) }
    settle()
    if branch.isPaused { return false }
    renditions[index] = compared(branch.report(decode), remedy: branch.plan.sizeRemedy)
    workingCount -= 1
    return true
  }
}
