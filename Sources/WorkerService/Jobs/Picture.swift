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
  private var path: PicturePath?
  private var reservation: Reservation?
  // Of more than a header's bytes, until there is a plan.
  private var hold: Hold
  private var outputs: [OutputChunks]
  // Those whose end was taken.
  private var isEnded: [Bool]

  /// What readers of formats with their header in front hold; not counted.
  private static let headerByteCount = 256 * 1024

  init(
    renditions: [Rendition], limits: WorkerLimits, memory: MemoryBudget, cancellation: Cancellation,
    tracing: TraceTarget
  ) {
    hold = Hold(budget: memory)
    self.renditions = renditions
    outputs = renditions.map { _ in OutputChunks() }
    isEnded = renditions.map { _ in false }
    self.cancellation = cancellation
    self.tracing = tracing
    reader = PictureReader(limits: limits.picture)
  }

  /// Takes the next bytes of the picture.
  ///
  /// - `isLast`: no byte follows these.
  /// - `followingByteCount`: how many bytes follow, where it is known.
  /// - `makeRoom`: called when there is no room to hold what comes before the plan; whether there may be now.
  mutating func push(
    _ bytes: Data, isLast: Bool, followingByteCount: Int? = nil, makeRoom: (PipelineError) -> Bool = { _ in false }
  ) throws(PipelineError) -> Outcome {
    if path != nil { return try pass(bytes, isLast: isLast) }
    let (isComplete, consumed) = try reader!.push(bytes.bytes, isLast: isLast)
    try countHeld(makeRoom)
    guard isComplete else { return .needsInput }
    var following = isLast ? 0 : followingByteCount
    if let count = following { following = bytes.count - consumed + count }
    let plan =
      renditions[0].isPreview
      ? try reader!.previewPlan(renditions[0].configuration)
      : try reader!.plan(renditions.map(\.configuration), followingByteCount: following)
    self.plan = plan
    return .planned(plan, consumedByteCount: consumed)
  }

  private mutating func countHeld(_ makeRoom: (PipelineError) -> Bool) throws(PipelineError) {
    let byteCount = reader?.heldByteCount ?? 0
    guard byteCount > Self.headerByteCount else { return }
    do throws(PipelineError) { try hold.grow(to: byteCount) } catch {
      guard makeRoom(error) else { throw error }
      try hold.grow(to: byteCount)
    }
  }

  /// Takes the next bytes of the picture once it was started.
  private mutating func pass(_ bytes: Data, isLast: Bool) throws(PipelineError) -> Outcome {
    let isDone = try path!.push(bytes.bytes, isLast: isLast) { outputs[$0].append($1) }
    return isDone ? .finished : .needsInput
  }

  /// Begins decoding, with the memory that the plan asks for set aside.
  /// - `reservation`: `nil` where it is part of another's.
  mutating func start(_ reservation: consuming Reservation?) throws(PipelineError) {
    self.reservation = consume reservation
    hold.release()  // what is held is part of what the plan asked for
    guard let reader = reader.take(), let plan else {
      throw PipelineError(.internalDefect, "a picture was started before its header was complete")
    }
    let ids = renditions.contains { $0.index != nil } ? renditions.map(\.id) : []
    path = try PicturePath(reader, plan: plan, renditionIDs: ids, cancellation: cancellation, tracing: tracing)
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
    return switch path?.outcome(of: index) {
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
