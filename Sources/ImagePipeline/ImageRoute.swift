/// The state of the work after a portion of an image's bytes.
package enum PipelineProgress: Sendable {
  /// Every byte was consumed; more bytes are needed.
  case needsInput
  /// Enough output is waiting; the next call continues with the unconsumed bytes, even if there are none.
  case paused
  /// Every rendition has ended; further bytes are ignored.
  case done
}

/// The end of a rendition.
///
/// The report lacks the times that only the caller knows: how long the image waited and how long it took in total.
package typealias RenditionOutcome = Result<ProcessingReport, PipelineError>

/// The way of one image from its bytes to those of its results, as its plan specifies.
///
/// The caller pushes the file's bytes in portions of any size and receives compressed bytes during the same calls,
/// which pause when enough output is waiting. A route that has thrown an error must not be used again.
package protocol ImageRoute: AnyObject {
  /// Consumes the next bytes of the image and emits the output that they complete, pausing when enough output is
  /// waiting.
  ///
  /// Each call assumes that the caller has read all output of earlier calls.
  /// - Parameters:
  ///   - bytes: The next bytes; after a pause, the bytes that were not consumed.
  ///   - isLast: Whether these are the last bytes of the image.
  ///   - consumed: Increased by the number of consumed bytes: all of them, unless the call paused.
  ///   - output: Called with the index of a rendition in the plan and its compressed bytes, which are valid only during
  ///     the call.
  /// - Returns: Whether the route needs input, has paused, or is done.
  /// - Throws: Errors of the image: `corruptImage`, `truncatedImage`, `limitExceeded`, `cancelled`.
  func advance(
    _ bytes: RawSpan, isLast: Bool, consumed: inout Int, output: (_ rendition: Int, RawSpan) -> Void
  ) throws(PipelineError) -> PipelineProgress

  /// Returns the outcome of the rendition at `index` in the plan; `nil` before its end.
  ///
  /// After the failure of a rendition, the others continue.
  func outcome(of index: Int) -> RenditionOutcome?

  /// Whether nothing that follows in the file is part of the image.
  var hasWholeImage: Bool { get }
}

extension ImageRoute {
  /// Consumes the next bytes of the image and emits all output that they complete, without pausing.
  /// - Parameters:
  ///   - bytes: The next bytes of the image.
  ///   - isLast: Whether these are the last bytes of the image.
  ///   - output: Called with the index of a rendition in the plan and its compressed bytes, which are valid only during
  ///     the call.
  /// - Returns: Whether every rendition has ended. Bytes after a complete image are ignored.
  /// - Throws: The errors of `advance`.
  package func push(
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
}

extension ImageReader {
  /// Returns the route of the image whose header this reader has read; see `Pipeline.init`.
  package consuming func takeRoute(
    _ plan: ImagePlan, renditionIDs: [String] = [], cancellation: Cancellation, tracing: TraceTarget = TraceTarget()
  ) throws(PipelineError) -> any ImageRoute {
    if plan.plans.contains(where: { $0.gainMap != nil }) {
      return try GainMapRoute(
        self, plan: plan, renditionIDs: renditionIDs, cancellation: cancellation, tracing: tracing)
    }
    if let passed = plan.passedThrough {
      return try RewriteStage(self, plan: passed, cancellation: cancellation, tracing: tracing)
    }
    return try Pipeline(self, plan: plan, renditionIDs: renditionIDs, cancellation: cancellation, tracing: tracing)
  }
}
