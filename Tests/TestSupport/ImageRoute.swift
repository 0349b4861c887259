package import ImagePipeline

/// Images with one result.
extension ImageReader {
  /// Returns the route of an image with one result, whose header this reader has read.
  package consuming func takeRoute(
    _ plan: Plan, cancellation: Cancellation, tracing: TraceTarget = TraceTarget()
  ) throws(PipelineError) -> any ImageRoute {
    try takeRoute(ImagePlan(plan), cancellation: cancellation, tracing: tracing)
  }
}

extension ImageRoute {
  /// Consumes the next bytes of the image and emits the output that they complete.
  /// - Parameters:
  ///   - bytes: The next bytes of the image.
  ///   - isLast: Whether these are the last bytes of the image.
  ///   - output: Called with compressed bytes, which are valid only during the call.
  /// - Returns: Whether the result is complete. Bytes after a complete image are ignored.
  /// - Throws: `corruptImage`, `truncatedImage`, `limitExceeded`, `cancelled`, or another error of the result.
  package func push(
    _ bytes: RawSpan, isLast: Bool, output: (RawSpan) -> Void
  ) throws(PipelineError) -> Bool {
    let isDone = try push(bytes, isLast: isLast) { _, compressed in output(compressed) }
    if case .failure(let error) = outcome(of: 0) { throw error }
    return isDone
  }

  /// Returns the report of the image, with its times filled in.
  ///
  /// It must be called only after `push` has returned `true`; otherwise it traps.
  /// - Parameters:
  ///   - queued: How long the image waited for admission.
  ///   - total: The time from the first byte to the last.
  /// - Returns: The report of the only rendition.
  package func report(queued: Duration, total: Duration) -> ProcessingReport {
    guard case .success(var report) = outcome(of: 0) else { preconditionFailure("the image has no report yet") }
    report.timings.queued = queued
    report.timings.total = total
    return report
  }
}
