internal import FoundationEssentials
package import ImagePipeline
internal import WorkThreads

/// The CPU work of one image: reads its bytes, plans its results and produces their compressed bytes.
///
/// All CPU work of an image runs in these functions. A value belongs to one task, so that continuing does not change
/// threads. Call `readHeader` until the header is complete, then `plan`, `start`, and `push` until `hasEnded`.
package struct ImageWork: ~Copyable {
  private let cancellation: Cancellation
  private let tracing: TraceTarget
  private var reader: ImageReader?
  private var path: ImageRoute?
  private var reservation: Reservation?
  // The format's name in logs while a thread processes the image.
  private var formatName: String?
  // Memory charged for input buffered beyond `headerByteCount`, until the image is started.
  private var bufferedReservation: Hold?
  /// The plan of the image; `nil` until it was planned.
  package private(set) var plan: ImagePlan?
  private var outputs: [OutputChunks] = []
  /// Whether work is paused because enough output is buffered.
  private(set) var isPaused = false
  // Whether the outcome of each rendition was returned.
  private var isEnded: [Bool] = []

  /// The size in bytes that readers may buffer without a charge; enough for formats whose header comes first.
  static let headerByteCount = 256 * 1024

  /// Creates the work of one image.
  ///
  /// - `memory`: the budget charged for a file that is buffered before its header is known; `nil` to charge nothing.
  package init(limits: ImageLimits, memory: MemoryBudget?, cancellation: Cancellation, tracing: TraceTarget) {
    self.cancellation = cancellation
    self.tracing = tracing
    reader = ImageReader(limits: limits)
    bufferedReservation = memory.map { Hold(budget: $0) }
  }

  /// Reads the next bytes of the image until its header is complete.
  /// - Returns: How many of the bytes belong to the header once it is complete; `nil` while more are needed.
  package mutating func readHeader(_ bytes: RawSpan, isLast: Bool) throws(PipelineError) -> Int? {
    if formatName == nil { formatName = ImageReader.formatName(bytes) ?? "unknown" }
    noteWork()
    let (isComplete, consumed) = try reader!.push(bytes, isLast: isLast)
    return isComplete ? consumed : nil
  }

  /// Records that the current thread processes this image until it returns.
  private func noteWork() { WorkThread.begin(formatName ?? "unknown") }

  /// The number of bytes of a file that are buffered until its header is complete.
  var bufferedByteCount: Int { mutating get { reader?.bufferedByteCount ?? 0 } }

  /// Charges the memory budget for the buffered bytes of a file whose header is not complete yet.
  /// - Throws: `overloaded` or `limitExceeded` if there is no room. The call can be repeated.
  package mutating func chargeBuffered() throws(PipelineError) {
    guard let byteCount = reader?.bufferedByteCount, byteCount > Self.headerByteCount else { return }
    try bufferedReservation?.grow(to: byteCount)
  }

  /// Plans a result for each configuration.
  ///
  /// Requires a complete header.
  /// - `followingByteCount`: the number of the image's bytes behind its header if all of them are known, else `nil`.
  package mutating func plan(
    _ configurations: [ProcessingConfiguration], followingByteCount: UInt64?
  ) throws(PipelineError) {
    expect(try reader!.plan(configurations, followingByteCount: followingByteCount))
  }

  /// Plans a single result.
  ///
  /// Requires a complete header.
  package mutating func plan(_ configuration: ProcessingConfiguration) throws(PipelineError) -> Plan {
    let plan = try reader!.plan(configuration)
    expect(ImagePlan(plan))
    return plan
  }

  /// Plans a small preview of the configuration's result.
  ///
  /// Requires a complete header.
  /// - `maxSide`: the maximum side of the preview in pixels.
  package mutating func planPreview(
    _ configuration: ProcessingConfiguration, maxSide: Int = ImageReader.maxPreviewSide
  ) throws(PipelineError) -> ImagePlan {
    let plan = try reader!.previewPlan(configuration, maxSide: maxSide)
    expect(plan)
    return plan
  }

  private mutating func expect(_ plan: ImagePlan) {
    self.plan = plan
    outputs = plan.renditions.map { _ in OutputChunks() }
    isEnded = plan.renditions.map { _ in false }
  }

  /// Starts decoding, with the memory reserved that the plan requires.
  /// - Parameters:
  ///   - reservation: The reserved memory; `nil` if it is part of another reservation.
  ///   - renditionIDs: The names of the renditions in traces, in the plan's order; empty for a single result.
  /// - Throws: `internalDefect` before the header is complete, and the errors of starting decoders and encoders.
  package mutating func start(_ reservation: consuming Reservation?, renditionIDs: [String] = []) throws(PipelineError)
  {
    self.reservation = consume reservation
    bufferedReservation = nil  // the plan's reservation includes the buffered bytes
    guard let reader = reader.take(), let plan else {
      throw PipelineError(.internalDefect, "an image was started before its header was complete")
    }
    path = try ImageRoute(reader, plan: plan, renditionIDs: renditionIDs, cancellation: cancellation, tracing: tracing)
  }

  /// Processes the next bytes of a started image; `takeOutput` returns the output.
  ///
  /// Stops when enough output is buffered and sets `isPaused`. The next call must then supply the unconsumed bytes
  /// again, even if there are none.
  /// - Returns: The number of bytes consumed.
  mutating func advance(_ bytes: RawSpan, isLast: Bool) throws(PipelineError) -> Int {
    noteWork()
    var consumed = 0
    let progress = try path!.advance(bytes, isLast: isLast, consumed: &consumed) { outputs[$0].append($1) }
    isPaused = progress == .paused
    return consumed
  }

  /// Processes the next bytes as `advance(_:isLast:)` does, and lends their output to `output`.
  mutating func advance(
    _ bytes: RawSpan, isLast: Bool, output: (_ rendition: Int, RawSpan) -> Void
  ) throws(PipelineError) -> Int {
    var consumed = 0
    let progress = try path!.advance(bytes, isLast: isLast, consumed: &consumed, output: output)
    isPaused = progress == .paused
    return consumed
  }

  /// Processes all the bytes, however much output they produce; for small results.
  /// - Returns: Whether every rendition has ended; bytes that follow are ignored.
  mutating func push(_ bytes: RawSpan, isLast: Bool) throws(PipelineError) -> Bool {
    noteWork()
    return try path!.push(bytes, isLast: isLast) { outputs[$0].append($1) }
  }

  /// Processes the next bytes of the image and lends their output to `output`, with the rendition's index in the plan.
  @discardableResult
  package mutating func push(
    _ bytes: RawSpan, isLast: Bool, output: (_ rendition: Int, RawSpan) -> Void
  ) throws(PipelineError) -> Bool {
    noteWork()
    return try path!.push(bytes, isLast: isLast, output: output)
  }

  /// Returns the available compressed bytes of a rendition, in chunks that fit into a message.
  mutating func takeOutput(of index: Int) -> [Data] { outputs[index].take() }

  /// Returns the outcome of a rendition once; `nil` before it has ended and on every later call.
  package mutating func takeEnd(of index: Int) -> Result<ProcessingReport, PipelineError>? {
    guard !isEnded[index], let end = end(of: index) else { return nil }
    isEnded[index] = true
    return end
  }

  private func end(of index: Int) -> Result<ProcessingReport, PipelineError>? {
    if case .failure(let error) = plan?.renditions[index] { return .failure(error) }
    return switch path?.outcome(of: index) {
    case .finished(let report): .success(report)
    case .failed(let error): .failure(error)
    case .working, nil: nil
    }
  }

  /// Whether the outcome of every rendition was returned.
  package var hasEnded: Bool { plan != nil && isEnded.allSatisfy(\.self) }
}
