/// The way of one image to its results, as its plan says: through a `Pipeline`, or past it.
///
/// Used as a `Pipeline` is.
package struct ImageRoute: ~Copyable {
  // One of the two is there.
  private var pipeline: Pipeline?
  private var rewrite: RewriteStage?
  private var isRewritten = false

  /// As `Pipeline.init`.
  package init(
    _ reader: consuming ImageReader, plan: ImagePlan, renditionIDs: [String] = [], cancellation: Cancellation,
    tracing: TraceTarget = TraceTarget()
  ) throws(PipelineError) {
    if let passed = plan.passedThrough {
      rewrite = try RewriteStage(reader, plan: passed, cancellation: cancellation, tracing: tracing)
    } else {
      pipeline = try Pipeline(
        reader, plan: plan, renditionIDs: renditionIDs, cancellation: cancellation, tracing: tracing)
    }
  }

  /// As `Pipeline.advance`.
  package mutating func advance(
    _ bytes: RawSpan, isLast: Bool, consumed: inout Int, output: (_ rendition: Int, RawSpan) -> Void
  ) throws(PipelineError) -> PipelineProgress {
    if pipeline != nil {
      return try pipeline!.advance(bytes, isLast: isLast, consumed: &consumed, output: output)
    }
    let progress = try rewrite!.advance(bytes, isLast: isLast, consumed: &consumed) { output(0, $0) }
    isRewritten = progress == .done
    return progress
  }

  /// Takes the next bytes of the image and gives all that they complete of the results, whose reader never waits.
  /// - `isLast`: no byte follows these.
  /// - `output`: called with the place of a rendition in the plan and its compressed bytes, which are lent for the call.
  /// - Returns: whether every rendition has ended. Bytes after a complete image are ignored.
  /// - Throws: as `Pipeline.advance`.
  package mutating func push(
    _ bytes: RawSpan, isLast: Bool, output: (_ rendition: Int, RawSpan) -> Void
  ) throws(PipelineError) -> Bool {
    var consumed = 0
    while true {
      let rest = bytes.extracting(droppingFirst: consumed)
      switch try advance(rest, isLast: isLast, consumed: &consumed, output: output) {
      case .needsInput: return false
      case .paused: continue
      case .done: return true
      }
    }
  }

  /// As `Pipeline.outcome`.
  package func outcome(of index: Int) -> Pipeline.Outcome {
    if pipeline != nil { return pipeline!.outcome(of: index) }
    return isRewritten ? .finished(rewrite!.report(queued: .zero, total: .zero)) : .working
  }
}

/// Images with one result.
extension ImageRoute {
  /// Turns a reader whose header is complete into the path of its image.
  package init(
    _ reader: consuming ImageReader, plan: Plan, cancellation: Cancellation, tracing: TraceTarget = TraceTarget()
  ) throws(PipelineError) {
    try self.init(reader, plan: ImagePlan(plan), cancellation: cancellation, tracing: tracing)
  }

  /// Takes the next bytes of the image and gives what they complete of the result.
  /// - `isLast`: no byte follows these.
  /// - `output`: called with compressed bytes, which are lent for the call.
  /// - Returns: whether the result is complete. Bytes after a complete image are ignored.
  /// - Throws: `corruptImage`, `truncatedImage`, `limitExceeded`, `cancelled`.
  package mutating func push(
    _ bytes: RawSpan, isLast: Bool, output: (RawSpan) -> Void
  ) throws(PipelineError) -> Bool {
    let isDone = try push(bytes, isLast: isLast) { _, compressed in output(compressed) }
    if case .failed(let error) = outcome(of: 0) { throw error }
    return isDone
  }

  /// What became of the image.
  ///
  /// Legal once `push` returned true.
  /// - `queued`: how long the image waited for admission.
  /// - `total`: from the first byte to the last.
  package func report(queued: Duration, total: Duration) -> ProcessingReport {
    guard case .finished(var report) = outcome(of: 0) else { preconditionFailure("the image has no report yet") }
    report.timings.queued = queued
    report.timings.total = total
    return report
  }
}
