/// The way of one picture to its result, as its plan says: through a `Pipeline`, or past it.
///
/// Used as a `Pipeline` is.
package struct PicturePath: ~Copyable {
  // One of the two is there.
  private var pipeline: Pipeline?
  private var rewrite: RewriteStage?

  /// Turns a reader whose header is complete into the path of its picture.
  package init(
    _ reader: consuming PictureReader, plan: Plan, cancellation: Cancellation, tracing: TraceTarget = TraceTarget()
  ) throws(PipelineError) {
    if plan.passage == .decoded {
      pipeline = try Pipeline(reader, plan: plan, cancellation: cancellation, tracing: tracing)
    } else {
      rewrite = try RewriteStage(reader, plan: plan, cancellation: cancellation, tracing: tracing)
    }
  }

  /// As `Pipeline.push`.
  package mutating func push(
    _ bytes: RawSpan, isLast: Bool, output: (RawSpan) -> Void
  ) throws(PipelineError) -> Bool {
    if pipeline != nil { return try pipeline!.push(bytes, isLast: isLast, output: output) }
    return try rewrite!.push(bytes, isLast: isLast, output: output)
  }

  /// As `Pipeline.report`.
  package func report(queued: Duration, total: Duration) -> ProcessingReport {
    if pipeline != nil { return pipeline!.report(queued: queued, total: total) }
    return rewrite!.report(queued: queued, total: total)
  }
}
