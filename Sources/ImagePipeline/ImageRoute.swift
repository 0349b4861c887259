/// The state of the work after a portion of an image's bytes.
package enum PipelineProgress: Sendable {
  /// Every byte was consumed; more bytes are needed.
  case needsInput
  /// Enough output is waiting; the next call continues with the unconsumed bytes, even if there are none.
  case paused
  /// Every rendition has ended; further bytes are ignored.
  case done
}

/// Processes one image as its plan specifies: decodes it with a `Pipeline`, or passes it through.
///
/// It is used in the same way as a `Pipeline`.
package enum ImageRoute: ~Copyable {
  case decoding(Pipeline)
  case rewriting(RewriteStage)
  case mapped(GainMapRoute)

  /// Creates the route for an image; see `Pipeline.init`.
  package init(
    _ reader: consuming ImageReader, plan: ImagePlan, renditionIDs: [String] = [], cancellation: Cancellation,
    tracing: TraceTarget = TraceTarget()
  ) throws(PipelineError) {
    if plan.plans.contains(where: { $0.gainMap != nil }) {
      self = .mapped(
        try GainMapRoute(
          reader, plan: plan, renditionIDs: renditionIDs, cancellation: cancellation, tracing: tracing))
    } else if let passed = plan.passedThrough {
      self = .rewriting(try RewriteStage(reader, plan: passed, cancellation: cancellation, tracing: tracing))
    } else {
      self = .decoding(
        try Pipeline(reader, plan: plan, renditionIDs: renditionIDs, cancellation: cancellation, tracing: tracing))
    }
  }

  /// Consumes the next bytes of the image and emits output; see `Pipeline.advance`.
  package mutating func advance(
    _ bytes: RawSpan, isLast: Bool, consumed: inout Int, output: (_ rendition: Int, RawSpan) -> Void
  ) throws(PipelineError) -> PipelineProgress {
    let progress: Result<PipelineProgress, PipelineError>
    switch consume self {
    case .decoding(var pipeline):
      do throws(PipelineError) {
        progress = .success(try pipeline.advance(bytes, isLast: isLast, consumed: &consumed, output: output))
      } catch { progress = .failure(error) }
      self = .decoding(pipeline)
    case .rewriting(var stage):
      do throws(PipelineError) {
        progress = .success(try stage.advance(bytes, isLast: isLast, consumed: &consumed) { output(0, $0) })
      } catch { progress = .failure(error) }
      self = .rewriting(stage)
    case .mapped(let route):
      do throws(PipelineError) {
        progress = .success(try route.advance(bytes, isLast: isLast, consumed: &consumed, output: output))
      } catch { progress = .failure(error) }
      self = .mapped(route)
    }
    return try progress.get()
  }

  /// Consumes the next bytes of the image and emits all output that they complete, without pausing.
  /// - Parameters:
  ///   - bytes: The next bytes of the image.
  ///   - isLast: Whether these are the last bytes of the image.
  ///   - output: Called with the index of a rendition in the plan and its compressed bytes, which are valid only during
  ///     the call.
  /// - Returns: Whether every rendition has ended. Bytes after a complete image are ignored.
  /// - Throws: The errors of `Pipeline.advance`.
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

  /// Returns the outcome of the rendition at `index` in the plan.
  package func outcome(of index: Int) -> Pipeline.Outcome {
    switch self {
    case .decoding(let pipeline): pipeline.outcome(of: index)
    case .rewriting(let stage): stage.outcome
    case .mapped(let route): route.outcome(of: index)
    }
  }

  /// Whether nothing that follows in the file is part of the image.
  var hasWholeImage: Bool {
    switch self {
    case .decoding(let pipeline): pipeline.hasWholeImage
    case .rewriting(let stage): stage.isDone
    case .mapped: false
    }
  }
}
