internal import ImageCodecs
internal import Tracing

/// A picture's file to one without metadata: the only stage of a picture that is not decoded.
struct RewriteStage: ~Copyable {
  private var rewriter: Rewriter
  // At most a sniffed prefix; given to the rewriter before any other byte.
  private var leftover: [UInt8]
  private let headerWarnings: [ImageHeader.Warning]
  private let plan: Plan
  private let budget: PictureBudget
  private let cancellation: Cancellation
  private let meter: StageMeter
  private var clock = WorkClock()
  private var inputByteCount: UInt64
  private var outputByteCount: UInt64 = 0

  init(
    _ reader: consuming PictureReader, plan: Plan, cancellation: Cancellation, tracing: TraceTarget
  ) throws(PipelineError) {
    (leftover, inputByteCount, budget) = (reader.leftover, reader.inputByteCount, reader.budget)
    headerWarnings = reader.header?.warnings ?? []
    let meter = StageMeter(.rewrite, tracing: tracing)
    let began = meter.begin()
    let rewriter = try reader.startRewriter(plan)
    meter.end(began)
    self.rewriter = rewriter
    self.meter = meter
    self.plan = plan
    self.cancellation = cancellation
  }

  /// As `Pipeline.push`.
  mutating func push(
    _ bytes: RawSpan, isLast: Bool, output: (RawSpan) -> Void
  ) throws(PipelineError) -> Bool {
    clock.begin()
    let began = meter.begin()
    do throws(PipelineError) {
      let isDone = try passAll(bytes, isLast: isLast, output: output)
      end(began)
      if isDone { finish() }
      return isDone
    } catch {
      end(began)
      throw error
    }
  }

  private mutating func end(_ began: ContinuousClock.Instant) {
    meter.end(began)
    meter.settle(clock.share())
  }

  private mutating func passAll(
    _ bytes: RawSpan, isLast: Bool, output: (RawSpan) -> Void
  ) throws(PipelineError) -> Bool {
    if !leftover.isEmpty {
      let prefix = leftover
      leftover = []
      let isLastPrefix = isLast && bytes.isEmpty
      let isDone = try prefix.withRawSpan { (prefix) throws(PipelineError) in
        try pass(prefix, isLast: isLastPrefix, counts: false, output: output)
      }
      if isDone { return true }
    }
    return try pass(bytes, isLast: isLast, counts: true, output: output)
  }

  private mutating func pass(
    _ bytes: RawSpan, isLast: Bool, counts: Bool, output: (RawSpan) -> Void
  ) throws(PipelineError) -> Bool {
    var rest = bytes
    while true {
      try cancellation.check()
      let event: Rewriter.Event
      do {
        let progress = try rewriter.read(rest, isLast: isLast)
        rest = rest.extracting(droppingFirst: progress.consumedByteCount)
        inputByteCount += counts ? UInt64(progress.consumedByteCount) : 0
        event = progress.value
      } catch { throw PipelineError(error) }
      switch event {
      case .needsInput: return false
      case .pieceReady:
        rewriter.withPiece { piece in
          outputByteCount += UInt64(piece.byteCount)
          output(piece)
        }
      case .done: return true
      }
    }
  }

  private mutating func finish() {
    let (plan, byteCount, peak) = (plan, Int(outputByteCount), budget.peak)
    meter.finish { attributes in
      attributes["imageworker.format"] = .string(plan.encoder.format.rawValue)
      attributes["imageworker.width"] = .int64(Int64(plan.outputSize.width))
      attributes["imageworker.height"] = .int64(Int64(plan.outputSize.height))
      attributes["imageworker.passage"] = .string(plan.passage.rawValue)
      attributes["imageworker.bytes"] = .int64(Int64(byteCount))
      attributes["imageworker.peak_memory_bytes"] = .int64(Int64(peak))
    }
  }

  /// As `Pipeline.report`; the time is told as that of encoding.
  func report(queued: Duration, total: Duration) -> ProcessingReport {
    var timings = StageTimings()
    timings.queued = queued
    timings.encode = meter.busy
    timings.total = total
    let found = headerWarnings + rewriter.warnings.filter { !headerWarnings.contains($0) }
    return ProcessingReport(
      input: plan.input, output: ImageInfo(plan), inputByteCount: inputByteCount, outputByteCount: outputByteCount,
      timings: timings, peakMemoryByteCount: UInt64(budget.peak), warnings: plan.warnings + found.map(\.rawValue),
      isPassedThrough: true)
  }
}
