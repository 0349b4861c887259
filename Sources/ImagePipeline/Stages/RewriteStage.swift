internal import ImageCodecs
internal import Tracing

/// Rewrites an image's file without its metadata: the only stage of an image that is passed through.
///
/// The result is decoded before it is emitted: see `PassthroughTrial`.
package final class RewriteStage: ImageRoute {
  private var rewriter: Rewriter
  private var trial: PassthroughTrial?
  // At most the prefix from format detection; the rewriter reads it before any other byte.
  private var leftover: [UInt8]
  private let plan: Plan
  private let budget: ImageBudget
  private let allowance: WorkAllowance
  private let clock: StageClock
  private var work = WorkClock()
  private var inputByteCount: UInt64
  private var outputByteCount: UInt64 = 0
  /// Whether the result is complete.
  private var isDone = false
  /// Whether the trial found damage that its decoder repairs.
  private var isDamaged = false
  // The image and the result, as far as the trial has found out about their frames.
  private var input: ImageInfo
  private var output: ImageInfo
  private let flow = ByteFlow()

  init(
    _ reader: consuming ImageReader, plan: Plan, cancellation: Cancellation, tracing: TraceTarget
  ) throws(PipelineError) {
    (leftover, inputByteCount, budget) = (reader.prefix, reader.inputByteCount, reader.budget)
    let allowance = reader.makeAllowance(cancellation)
    let clock = StageClock(tracing: tracing)
    let interrupted = clock.enter(.rewrite)
    trial = try reader.makeTrial(plan, allowance: allowance)
    let rewriter = try reader.startRewriter(plan)
    clock.leave(to: interrupted)
    self.rewriter = rewriter
    self.clock = clock
    self.plan = plan
    (input, output) = (plan.input, ImageInfo(plan))
    self.allowance = allowance
  }

  package func advance(
    _ bytes: RawSpan, isLast: Bool, consumed: inout Int, output: (_ rendition: Int, RawSpan) -> Void
  ) throws(PipelineError) -> PipelineProgress {
    work = WorkClock()
    allowance.begin()
    defer { allowance.end() }
    flow.waitingByteCount = 0
    let interrupted = clock.enter(.rewrite)
    do throws(PipelineError) {
      var taken = 0
      let progress = try passAll(bytes, isLast: isLast, consumed: &taken) { output(0, $0) }
      inputByteCount += UInt64(taken)
      consumed += progress == .paused ? taken : bytes.byteCount
      end(interrupted)
      if progress == .done { finish() }
      isDone = progress == .done
      return progress
    } catch {
      end(interrupted)
      throw error
    }
  }

  private func end(_ interrupted: StageSpan?) {
    clock.leave(to: interrupted)
    clock.settle(work.share())
  }

  private func passAll(
    _ bytes: RawSpan, isLast: Bool, consumed: inout Int, output: (RawSpan) -> Void
  ) throws(PipelineError) -> PipelineProgress {
    if !leftover.isEmpty {
      let prefix = leftover
      let isLastPrefix = isLast && bytes.isEmpty
      var taken = 0
      let progress = try prefix.withRawSpan { (prefix) throws(PipelineError) in
        try pass(prefix, isLast: isLastPrefix, consumed: &taken, output: output)
      }
      leftover.removeFirst(progress == .needsInput ? prefix.count : taken)
      if progress != .needsInput { return progress }
    }
    return try pass(bytes, isLast: isLast, consumed: &consumed, output: output)
  }

  private func pass(
    _ bytes: RawSpan, isLast: Bool, consumed: inout Int, output: (RawSpan) -> Void
  ) throws(PipelineError) -> PipelineProgress {
    while true {
      try allowance.check()
      if flow.isFull { return .paused }
      let event: Rewriter.Event
      do {
        let allowance = allowance
        let progress = try rewriter.read(bytes.extracting(droppingFirst: consumed), isLast: isLast) {
          (try? allowance.check()) != nil
        }
        consumed += progress.consumedByteCount
        event = progress.value
      } catch { throw try PipelineError(interruption: error, allowance) }
      switch event {
      case .needsInput: return .needsInput
      case .pieceReady:
        let isWrittenEnd = rewriter.warnings.contains(.missingEnd)
        try rewriter.withPiece { (piece) throws(PipelineError) in
          try trial?.push(isWrittenEnd ? RawSpan() : piece, isLast: isWrittenEnd)
          outputByteCount += UInt64(piece.byteCount)
          flow.waitingByteCount += piece.byteCount
          output(piece)
        }
      case .done:
        try endTrial()
        return .done
      }
    }
  }

  private func endTrial() throws(PipelineError) {
    try trial?.push(RawSpan(), isLast: true)
    trial?.describeFrames(of: &input)
    trial?.describeFrames(of: &output)
    isDamaged = trial?.isDamaged ?? false
    trial = nil
  }

  private func finish() {
    let (plan, byteCount, peak) = (plan, Int(outputByteCount), budget.peak)
    clock.finish(.rewrite) { attributes in
      attributes["imageworker.format"] = .string(plan.encoder.format.rawValue)
      attributes["imageworker.width"] = .int64(Int64(plan.outputSize.width))
      attributes["imageworker.height"] = .int64(Int64(plan.outputSize.height))
      attributes["imageworker.passthrough"] = .string(plan.passthrough.rawValue)
      attributes["imageworker.bytes"] = .int64(Int64(byteCount))
      attributes["imageworker.peak_memory_bytes"] = .int64(Int64(peak))
    }
  }

  package var hasWholeImage: Bool { isDone }

  package func outcome(of index: Int) -> RenditionOutcome? {
    guard isDone else { return nil }
    var found = rewriter.warnings.map { Warning($0) }
    if isDamaged, !found.contains(.repairedDamage), !found.contains(.missingEnd) { found.append(.repairedDamage) }
    found.removeAll(where: plan.headerWarnings.contains)
    return .success(
      ProcessingReport(
        input: input, output: output, inputByteCount: inputByteCount, outputByteCount: outputByteCount,
        timings: clock.timings, peakMemoryByteCount: UInt64(budget.peak),
        warnings: plan.knownWarnings + found, faces: plan.faces, isPassedThrough: true))
  }
}
