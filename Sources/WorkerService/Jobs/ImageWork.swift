internal import FoundationEssentials
package import ImagePipeline
internal import WorkThreads

/// The CPU work of one image: its bytes in, its plan, its compressed results out.
///
/// Everything that costs CPU happens in its functions. It belongs to one task, so that going on needs no change of
/// threads. Read the header, `plan`, `start`, and then `push` until `hasEnded`.
package struct ImageWork: ~Copyable {
  private let cancellation: Cancellation
  private let tracing: TraceTarget
  private var reader: ImageReader?
  private var path: ImageRoute?
  private var reservation: Reservation?
  // What logs call the image while a thread is at it.
  private var formatName: String?
  // Of more than a header's bytes, until the image is started.
  private var bufferedReservation: Hold?
  /// What was decided for the image; `nil` until then.
  package private(set) var plan: ImagePlan?
  private var outputs: [OutputChunks] = []
  /// Whether work stopped because enough output waits.
  private(set) var isPaused = false
  // Those whose end was returned.
  private var isEnded: [Bool] = []

  /// What readers of formats with their header in front buffer; not counted.
  private static let headerByteCount = 256 * 1024

  /// - `memory`: what is charged for a file that is buffered before its header is known; `nil` for nothing.
  package init(limits: ImageLimits, memory: MemoryBudget?, cancellation: Cancellation, tracing: TraceTarget) {
    self.cancellation = cancellation
    self.tracing = tracing
    reader = ImageReader(limits: limits)
    bufferedReservation = memory.map { Hold(budget: $0) }
  }

  /// Takes the next bytes of the image until its header is complete.
  /// - Returns: how many of them belong to the header once it is complete; `nil` while it needs more.
  package mutating func readHeader(_ bytes: RawSpan, isLast: Bool) throws(PipelineError) -> Int? {
    if formatName == nil { formatName = ImageReader.formatName(bytes) ?? "unknown" }
    noteWork()
    let (isComplete, consumed) = try reader!.push(bytes, isLast: isLast)
    return isComplete ? consumed : nil
  }

  /// From here on the thread is at this image until it returns.
  private func noteWork() { WorkThread.begin(formatName ?? "unknown") }

  /// Charges what is buffered of a file whose header is not known yet.
  /// - Throws: `overloaded`, `limitExceeded` where there is no room. Repeating it is legal.
  package mutating func chargeBuffered() throws(PipelineError) {
    guard let byteCount = reader?.bufferedByteCount, byteCount > Self.headerByteCount else { return }
    try bufferedReservation?.grow(to: byteCount)
  }

  /// Plans a result for each configuration; legal once the header is complete.
  /// - `following`: the bytes of the image behind its header, where all of them are known.
  package mutating func plan(
    _ configurations: [ProcessingConfiguration], following: RawSpan?
  ) throws(PipelineError) {
    expect(try reader!.plan(configurations, following: following))
  }

  /// Plans the only result; legal once the header is complete.
  package mutating func plan(_ configuration: ProcessingConfiguration) throws(PipelineError) -> Plan {
    let plan = try reader!.plan(configuration)
    expect(ImagePlan(plan))
    return plan
  }

  /// Plans a small image that shows what the configuration's result will; legal once the header is complete.
  package mutating func planPreview(_ configuration: ProcessingConfiguration) throws(PipelineError) -> ImagePlan {
    let plan = try reader!.previewPlan(configuration)
    expect(plan)
    return plan
  }

  private mutating func expect(_ plan: ImagePlan) {
    self.plan = plan
    outputs = plan.renditions.map { _ in OutputChunks() }
    isEnded = plan.renditions.map { _ in false }
  }

  /// Begins decoding, with the memory that the plan asks for reserved.
  /// - Parameters:
  ///   - reservation: `nil` where it is part of another's.
  ///   - renditionIDs: what traces call the renditions, in the plan's order; empty where there is but one result.
  /// - Throws: `internalDefect` before the header is complete, and what decoders and encoders throw at their start.
  package mutating func start(_ reservation: consuming Reservation?, renditionIDs: [String] = []) throws(PipelineError)
  {
    self.reservation = consume reservation
    bufferedReservation = nil  // what is buffered is part of what the plan asked for
    guard let reader = reader.take(), let plan else {
      throw PipelineError(.internalDefect, "an image was started before its header was complete")
    }
    path = try ImageRoute(reader, plan: plan, renditionIDs: renditionIDs, cancellation: cancellation, tracing: tracing)
  }

  /// Takes the next bytes of the image once it was started; `takeOutput` returns what they complete.
  ///
  /// It stops when enough output waits: `isPaused` then, and the rest of the same bytes comes next, even if there is none.
  /// - Returns: how many of the bytes need not come again.
  mutating func advance(_ bytes: RawSpan, isLast: Bool) throws(PipelineError) -> Int {
    noteWork()
    var consumed = 0
    let progress = try path!.advance(bytes, isLast: isLast, consumed: &consumed) { outputs[$0].append($1) }
    isPaused = progress == .paused
    return consumed
  }

  /// As `advance`, for results that are small: takes all the bytes, however much they complete.
  /// - Returns: whether every rendition has ended; bytes that follow are ignored.
  mutating func push(_ bytes: RawSpan, isLast: Bool) throws(PipelineError) -> Bool {
    noteWork()
    return try path!.push(bytes, isLast: isLast) { outputs[$0].append($1) }
  }

  /// Takes the next bytes of the image, with what they complete lent to `output`, by its rendition's place in the plan.
  @discardableResult
  package mutating func push(
    _ bytes: RawSpan, isLast: Bool, output: (_ rendition: Int, RawSpan) -> Void
  ) throws(PipelineError) -> Bool {
    noteWork()
    return try path!.push(bytes, isLast: isLast, output: output)
  }

  /// Returns a rendition's compressed bytes that are ready, in chunks that fit a message.
  mutating func takeOutput(of index: Int) -> [Data] { outputs[index].take() }

  /// Returns the outcome of a rendition, once: `nil` while it is worked on, and from the second time on.
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

  /// Whether the end of every rendition was returned.
  package var hasEnded: Bool { plan != nil && isEnded.allSatisfy(\.self) }
}

/// Compressed bytes cut into chunks of at most 64 KiB.
private struct OutputChunks {
  static let chunkByteCount = 64 * 1024

  private var ready: [Data] = []
  private var current = Data()

  mutating func append(_ bytes: RawSpan) {
    var rest = bytes
    while !rest.isEmpty {
      let count = min(rest.byteCount, Self.chunkByteCount - current.count)
      rest.extracting(first: count).withUnsafeBytes { current.append(contentsOf: $0) }
      rest = rest.extracting(droppingFirst: count)
      if current.count == Self.chunkByteCount { closeChunk() }
    }
  }

  /// What is ready.
  ///
  /// A chunk that is not full goes too: its receiver may wait for nothing else.
  mutating func take() -> [Data] {
    closeChunk()
    defer { ready = [] }
    return ready
  }

  private mutating func closeChunk() {
    guard !current.isEmpty else { return }
    ready.append(current)
    current = Data()
  }
}
