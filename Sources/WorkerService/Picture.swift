internal import FoundationEssentials
internal import ImagePipeline

/// One picture in the worker: its bytes in, its plan, its result out.
///
/// Everything that costs CPU happens in its functions. It belongs to one task, so that going on needs no change of
/// threads.
struct Picture: ~Copyable {
  /// What a push came to.
  enum Outcome: Sendable {
    case needsInput
    /// The header is complete. Set memory aside and call `start`; then push from `consumedByteCount` on.
    case planned(Plan, consumedByteCount: Int)
    case finished
  }

  private let configuration: ProcessingConfiguration
  private let cancellation: Cancellation
  private let tracing: TraceTarget
  private var reader: PictureReader?
  private var plan: Plan?
  private var path: PicturePath?
  private var reservation: Reservation?
  // Of more than a header's bytes, until there is a plan.
  private var hold: Hold
  private var output = OutputChunks()

  /// What readers of formats with their header in front hold; not counted.
  private static let headerByteCount = 256 * 1024

  init(
    configuration: ProcessingConfiguration, limits: WorkerLimits, memory: MemoryBudget, cancellation: Cancellation,
    tracing: TraceTarget
  ) {
    hold = Hold(budget: memory)
    self.configuration = configuration
    self.cancellation = cancellation
    self.tracing = tracing
    reader = PictureReader(limits: limits.picture)
  }

  /// Takes the next bytes of the picture.
  /// - `isLast`: no byte follows these.
  /// - `followingByteCount`: how many bytes follow, where it is known.
  mutating func push(
    _ bytes: Data, isLast: Bool, followingByteCount: Int? = nil
  ) throws(PipelineError) -> Outcome {
    if path != nil { return try pass(bytes, isLast: isLast) }
    let (isComplete, consumed) = try reader!.push(bytes.bytes, isLast: isLast)
    try countHeld()
    guard isComplete else { return .needsInput }
    var following = isLast ? 0 : followingByteCount
    if let count = following { following = bytes.count - consumed + count }
    let plan = try reader!.plan(configuration, followingByteCount: following)
    self.plan = plan
    return .planned(plan, consumedByteCount: consumed)
  }

  private mutating func countHeld() throws(PipelineError) {
    let byteCount = reader?.heldByteCount ?? 0
    if byteCount > Self.headerByteCount { try hold.grow(to: byteCount) }
  }

  /// Takes the next bytes of the picture once it was started.
  private mutating func pass(_ bytes: Data, isLast: Bool) throws(PipelineError) -> Outcome {
    let isDone = try path!.push(bytes.bytes, isLast: isLast) { output.append($0) }
    if isDone { output.finish() }
    return isDone ? .finished : .needsInput
  }

  /// Begins decoding, with the memory that the plan asks for set aside.
  mutating func start(_ reservation: consuming Reservation) throws(PipelineError) {
    self.reservation = consume reservation
    hold.release()  // what is held is part of what the plan asked for
    guard let reader = reader.take(), let plan else {
      throw PipelineError(.internalDefect, "a picture was started before its header was complete")
    }
    path = try PicturePath(reader, plan: plan, cancellation: cancellation, tracing: tracing)
  }

  /// The compressed bytes that are ready, in chunks that fit a message.
  mutating func takeOutput() -> [Data] { output.take() }

  func report(queued: Duration, total: Duration) -> ProcessingReport {
    path!.report(queued: queued, total: total)
  }
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

  mutating func finish() { closeChunk() }

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
