internal import FoundationEssentials
internal import ImagePipeline

/// One picture in the worker: its bytes in, its plan, its results out.
///
/// Everything that costs CPU happens in its functions. It belongs to one task, so that going on needs no change of
/// threads.
struct Picture: ~Copyable {
  /// What a push came to.
  enum Outcome: Sendable {
    case needsInput
    /// The header is complete. Set memory aside and call `start`; then push from `consumedByteCount` on.
    case planned(PicturePlan, consumedByteCount: Int)
    case finished
  }

  private let renditions: [Rendition]
  private let cancellation: Cancellation
  private let tracing: TraceTarget
  private var reader: PictureReader?
  private var plan: PicturePlan?
  private var pipeline: Pipeline?
  private var reservation: Reservation?
  private var outputs: [OutputChunks]
  // Those whose end was taken.
  private var isEnded: [Bool]

  init(
    renditions: [Rendition], limits: WorkerLimits, cancellation: Cancellation, tracing: TraceTarget
  ) {
    self.renditions = renditions
    outputs = renditions.map { _ in OutputChunks() }
    isEnded = renditions.map { _ in false }
    self.cancellation = cancellation
    self.tracing = tracing
    reader = PictureReader(limits: limits.picture)
  }

  /// Takes the next bytes of the picture.
  /// - `isLast`: no byte follows these.
  mutating func push(_ bytes: Data, isLast: Bool) throws(PipelineError) -> Outcome {
    guard pipeline == nil else {
      let isDone = try pipeline!.push(bytes.bytes, isLast: isLast) { outputs[$0].append($1) }
      return isDone ? .finished : .needsInput
    }
    let (isComplete, consumed) = try reader!.push(bytes.bytes, isLast: isLast)
    guard isComplete else { return .needsInput }
    let plan = try reader!.plan(renditions.map(\.configuration))
    self.plan = plan
    return .planned(plan, consumedByteCount: consumed)
  }

  /// Begins decoding, with the memory that the plan asks for set aside.
  mutating func start(_ reservation: consuming Reservation) throws(PipelineError) {
    self.reservation = consume reservation
    guard let reader = reader.take(), let plan else {
      throw PipelineError(.internalDefect, "a picture was started before its header was complete")
    }
    let ids = renditions.contains { $0.index != nil } ? renditions.map(\.id) : []
    pipeline = try Pipeline(reader, plan: plan, renditionIDs: ids, cancellation: cancellation, tracing: tracing)
  }

  /// A rendition's compressed bytes that are ready, in chunks that fit a message.
  mutating func takeOutput(of index: Int) -> [Data] { outputs[index].take() }

  /// What became of a rendition, once: `nil` while it is worked on, and from the second time on.
  mutating func takeEnd(of index: Int) -> Result<ProcessingReport, PipelineError>? {
    guard !isEnded[index], let end = end(of: index) else { return nil }
    isEnded[index] = true
    return end
  }

  private func end(of index: Int) -> Result<ProcessingReport, PipelineError>? {
    if case .failure(let error) = plan?.renditions[index] { return .failure(error) }
    return switch pipeline?.outcome(of: index) {
    case .finished(let report): .success(report)
    case .failed(let error): .failure(error)
    case .working, nil: nil
    }
  }

  /// Whether the end of every rendition was taken.
  var hasEnded: Bool { isEnded.allSatisfy(\.self) }
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
