internal import ImageCodecs

/// Serves the requests for work on one image: reads its header, plans its results and produces their compressed bytes.
///
/// All CPU work of an image runs here. A server belongs to one task at a time. It has no state left after an error.
package final class ImageServer {
  private enum Phase: ~Copyable {
    case reading(ImageReader)
    case working(any ImageRoute)
  }

  /// The size in bytes of the windows in which bytes are processed, so that results do not depend on the requests' sizes.
  ///
  /// A strip of a large image needs about as many.
  package static let windowByteCount = 128 * 1024
  /// The number of output bytes that are worth a response.
  ///
  /// In a helper, a response costs two changes of processes: with 64 KiB, a result of 1.2 MB needed 19 responses.
  private static let sentByteCount = 256 * 1024
  /// The time after which fewer bytes are sent, too, so that clients receive the first ones of slow work early; a response costs
  /// at most a two-hundredth of it.
  private static let sentInterval = Duration.milliseconds(20)

  private let cancellation: Cancellation
  private let tracing: TraceTarget
  private var auxiliary: AuxiliaryImages
  /// The state of the work; `nil` once it has ended or failed.
  private var phase: Phase?
  /// The plan of the image; `nil` until its header is complete.
  package private(set) var plan: ImagePlan?
  /// The response to the current request, as far as it is known.
  package private(set) var response = WorkResponse()
  // Whether each rendition's outcome was part of a response.
  private var isEnded: [Bool] = []

  /// Creates the server of one image.
  ///
  /// - `cancellation`: ends the work within a strip.
  /// - `tracing`: receives a span for each stage.
  /// - `auxiliary`: the images that overlays name.
  package init(
    limits: ImageLimits, cancellation: Cancellation, tracing: TraceTarget,
    auxiliary: AuxiliaryImages = AuxiliaryImages()
  ) {
    self.auxiliary = auxiliary
    self.cancellation = cancellation
    self.tracing = tracing
    var reader = ImageReader(limits: limits)
    reader.cancellation = cancellation
    phase = .reading(reader)
  }

  /// Adds an image that overlays name; must be called before the image is planned.
  package func add(_ image: AuxiliaryImage) { auxiliary.add(image) }

  /// Serves a request.
  /// - Parameters:
  ///   - request: The request.
  ///   - bytes: The image's next bytes.
  ///   - isLast: Whether no bytes follow.
  ///   - output: Called with the index of a rendition in the plan and its compressed bytes, which are valid only during
  ///     the call.
  /// - Returns: The response, without the output.
  /// - Throws: The error that ends the image, or `internalDefect` if the request does not fit its state.
  package func serve(
    _ request: WorkRequest, _ bytes: RawSpan, isLast: Bool, output: (_ rendition: Int, RawSpan) -> Void
  ) throws(PipelineError) -> WorkResponse {
    response = WorkResponse()
    switch request {
    case .readHeader(let planning):
      try readHeader(bytes, isLast: isLast, planning)
      guard let plan = response.plan, plan.hasResults, plan.reservedByteCount <= planning.admittedByteCount else {
        break
      }
      try start(planning.renditionIDs)
      let rest = bytes.extracting(droppingFirst: response.consumedByteCount)
      // Whole windows if more bytes follow.
      let count = isLast ? rest.byteCount : rest.byteCount - rest.byteCount % Self.windowByteCount
      if count > 0 || isLast { try advance(rest.extracting(first: count), isLast: isLast, output: output) }
    case .start(let renditionIDs): try start(renditionIDs)
    case .advance: try advance(bytes, isLast: isLast, output: output)
    }
    return response
  }

  // MARK: Steps

  private func readHeader(_ bytes: RawSpan, isLast: Bool, _ planning: WorkRequest.Planning) throws(PipelineError) {
    guard case .reading(var reader)? = phase.take() else { throw .outOfOrder }
    reader.lateOrientation = planning.lateOrientation
    reader.countedFrames = planning.countedFrames
    reader.isInspection = planning.isInspection
    reader.auxiliary = auxiliary
    reader.keepsMetadata = planning.results.readMetadata
    reader.configurations = planning.results.configurations
    var consumed = 0
    repeat {
      let window = bytes.extracting(droppingFirst: consumed).extracting(first: Self.windowByteCount)
      let isLastWindow = isLast && consumed + window.byteCount == bytes.byteCount
      let (isComplete, count) = try reader.push(window, isLast: isLastWindow)
      consumed += isComplete ? count : window.byteCount
      guard isComplete else { continue }
      let following = planning.followingByteCount.map { $0 + UInt64(bytes.byteCount - consumed) }
      let plan =
        switch planning.results {
        case .renditions(let configurations): try reader.plan(configurations, followingByteCount: following)
        case .preview(let configuration, let maxSide): try reader.previewPlan(configuration, maxSide: maxSide)
        }
      self.plan = plan
      isEnded = plan.renditions.map { _ in false }
      response.plan = PlannedImage(plan)
      break
    } while consumed < bytes.byteCount
    (response.consumedByteCount, response.bufferedByteCount) = (consumed, reader.budget.used)
    phase = .reading(reader)
  }

  private func start(_ renditionIDs: [String]) throws(PipelineError) {
    guard let plan, case .reading(let reader)? = phase.take() else { throw .outOfOrder }
    phase = .working(
      try reader.takeRoute(plan, renditionIDs: renditionIDs, cancellation: cancellation, tracing: tracing))
    response.isStarted = true
  }

  private func advance(
    _ bytes: RawSpan, isLast: Bool, output: (_ rendition: Int, RawSpan) -> Void
  ) throws(PipelineError) {
    guard case .working(let route)? = phase.take() else { throw .outOfOrder }
    let began = ContinuousClock.now
    var (consumed, outputByteCount) = (0, 0)
    repeat {
      let window = bytes.extracting(droppingFirst: consumed).extracting(first: Self.windowByteCount)
      let isLastWindow = isLast && consumed + window.byteCount == bytes.byteCount
      var count = 0
      let progress = try route.advance(window, isLast: isLastWindow, consumed: &count) { rendition, compressed in
        outputByteCount += compressed.byteCount
        output(rendition, compressed)
      }
      consumed += count
      noteEnds(of: route)
      response.isPaused = progress == .paused
      if count < window.byteCount || progress != .needsInput || outputByteCount >= Self.sentByteCount { break }
      if outputByteCount > 0, began.duration(to: .now) >= Self.sentInterval { break }
    } while consumed < bytes.byteCount
    response.consumedByteCount += consumed
    if isEnded.contains(false) { phase = .working(route) }
  }

  // MARK: State

  private func noteEnds(of route: any ImageRoute) {
    for index in isEnded.indices where !isEnded[index] {
      guard let outcome = route.outcome(of: index) else { continue }
      response.ends.append((index, outcome))
      isEnded[index] = true
    }
  }
}

extension PipelineError {
  fileprivate static var outOfOrder: PipelineError {
    PipelineError(.internalDefect, "an image received a request that does not fit its state")
  }
}
