internal import FoundationEssentials
internal import ImagePipeline
internal import Tracing
internal import WorkThreads
internal import WorkerIsolation

/// The CPU work of one image: in this process, or in a helper process if the worker isolates codecs.
///
/// The functions are those of `ImageWork`; call `prepare` or `prepareNow` first.
struct JobWork: ~Copyable {
  private enum Place {
    case here
    case isolated(IsolatedWork)
  }

  /// The memory in bytes in which a helper may start an image together with its header: enough for most photographs that
  /// become smaller.
  private static let spareByteCount = 4 << 20

  private let place: Place
  // Set only if the work is done in this process.
  private var work: ImageWork?
  private var formatName: String?
  private var reservation: Reservation?
  // Memory charged for input buffered beyond `ImageWork.headerByteCount`, until the image is started.
  private var bufferedReservation: Hold?
  // The memory of the helper process.
  private var processCharge: ProcessCharge?
  private var localPlan: PlannedImage?

  /// - `caller`: the client that the image belongs to.
  init(
    _ environment: WorkerEnvironment, caller: ImageCaller, cancellation: Cancellation, isPreview: Bool = false
  ) {
    let limits = environment.limits.image
    if let helpers = environment.helpers {
      let target = IsolatedWork.Target(
        tracer: environment.tracer, context: ServiceContext.current ?? .topLevel, isPreview: isPreview,
        isRecorded: environment.isTraced(ServiceContext.current ?? .topLevel))
      place = .isolated(
        IsolatedWork(
          helpers, caller: caller.connection, limits: limits, cancellation: cancellation, tracing: target))
      bufferedReservation = Hold(budget: environment.memory)
      processCharge = ProcessCharge(budget: environment.memory)
    } else {
      place = .here
      work = ImageWork(
        limits: limits, memory: environment.memory, cancellation: cancellation,
        tracing: TraceTarget(tracer: environment.tracer, isPreview: isPreview))
    }
  }

  /// Waits until the work can start.
  func prepare() async throws(PipelineError) {
    if case .isolated(let work) = place { try await work.prepare() }
  }

  /// Makes the work ready without waiting.
  /// - Throws: `overloaded` if that is not possible.
  func prepareNow() throws(PipelineError) {
    if case .isolated(let work) = place { try work.prepareNow() }
  }

  /// Returns the CPU time that other processes have used for this image since the last call.
  func takeRemoteCPUTime() -> Duration {
    switch place {
    case .here: .zero
    case .isolated(let work): work.takeCPUTime()
    }
  }

  /// The cached results of the process that works on the image; `nil` for this process.
  var kept: KeptResults? {
    switch place {
    case .here: nil
    case .isolated(let work): work.kept
    }
  }

  /// Records that the current thread works on this image until it returns.
  private func noteWork() { WorkThread.begin(formatName ?? "unknown") }

  /// The maximum number of bytes to process at a time.
  static func windowByteCount(in environment: WorkerEnvironment) -> Int {
    environment.helpers == nil ? SourceWindows.byteCount : HelperLayout.inputByteCount
  }

  /// See `ImageWork.readHeader`.
  mutating func readHeader(_ bytes: RawSpan, isLast: Bool) throws(PipelineError) -> Int? {
    switch place {
    case .here: return try work!.readHeader(bytes, isLast: isLast)
    case .isolated(let work): return try readHeader(bytes, isLast: isLast, in: work, planning: nil)
    }
  }

  private mutating func readHeader(
    _ bytes: RawSpan, isLast: Bool, in work: IsolatedWork, planning: HelperRequest.Planning?
  ) throws(PipelineError) -> Int? {
    if formatName == nil { formatName = ImageReader.formatName(bytes) }
    noteWork()
    work.expect(byteCount: bytes.byteCount)
    processCharge?.grow(to: HelperPool.helperByteCount + work.windowByteCount - HelperPool.inputByteCount)
    return try work.readHeader(bytes, isLast: isLast, planning: planning)
  }

  /// See `ImageWork.readHeader`.
  ///
  /// A helper also plans the results, and starts the image if it needs little memory: each further request costs as much
  /// as a small stage.
  /// - Parameters:
  ///   - bytes: The next bytes.
  ///   - beyond: All bytes of the image behind them.
  ///   - configurations: What `plan` will be called with.
  ///   - renditionIDs: What `start` will be called with.
  ///   - reserve: Returns memory in which the image may be started, if there is plenty.
  /// - Returns: The number of bytes that belong to the header; `nil` while more are needed.
  /// - Throws: Errors of the header and of its plan, and those of starting the image.
  mutating func readHeader(
    _ bytes: RawSpan, beyond: RawSpan, planning configurations: () -> [ProcessingConfiguration],
    renditionIDs: () -> [String], reserve: (_ byteCount: Int) -> Reservation?
  ) throws(PipelineError) -> Int? {
    guard case .isolated(let work) = place else { return try readHeader(bytes, isLast: beyond.isEmpty) }
    if formatName == nil { formatName = ImageReader.formatName(bytes) }
    var planning = HelperRequest.Planning(
      configurations: configurations(), beyondByteCount: UInt64(beyond.byteCount))
    let spare = reserve(Self.spareByteCount)
    if spare != nil {
      (planning.admittedByteCount, planning.renditionIDs) = (UInt64(Self.spareByteCount), renditionIDs())
    }
    let consumed = try readHeader(bytes, isLast: beyond.isEmpty, in: work, planning: planning)
    if work.isStartedWithHeader, let plan = work.plan, var used = spare {
      used.shrink(to: used.byteCount - Self.spareByteCount + Int(clamping: plan.reservedByteCount))
      reservation = consume used
      bufferedReservation = nil
      if work.isReleased { processCharge = nil }
    }
    return consumed
  }

  /// Whether the image was started by `readHeader`.
  var isStartedWithHeader: Bool {
    switch place {
    case .here: false
    case .isolated(let work): work.isStartedWithHeader
    }
  }

  mutating func chargeBuffered() throws(PipelineError) {
    switch place {
    case .here: try work!.chargeBuffered()
    case .isolated(let work):
      guard !work.isStartedWithHeader, work.bufferedByteCount > ImageWork.headerByteCount else { return }
      try bufferedReservation?.grow(to: work.bufferedByteCount)
    }
  }

  mutating func plan(
    _ configurations: [ProcessingConfiguration], followingByteCount: UInt64?
  ) throws(PipelineError) {
    switch place {
    case .here:
      localPlan = try work!.planned(configurations, followingByteCount: followingByteCount)
    case .isolated(let work):
      guard work.plan == nil else { return }  // with the header
      try work.plan(configurations, followingByteCount: followingByteCount)
    }
  }

  mutating func planPreview(
    _ configuration: ProcessingConfiguration, maxSide: Int
  ) throws(PipelineError) -> PlannedImage {
    switch place {
    case .here:
      let plan = PlannedImage(try work!.planPreview(configuration, maxSide: maxSide))
      localPlan = plan
      return plan
    case .isolated(let work):
      try work.planPreview(configuration, maxSide: maxSide)
      return work.plan!
    }
  }

  /// The plan of the image; `nil` until it was planned.
  var plan: PlannedImage? {
    switch place {
    case .here: localPlan
    case .isolated(let work): work.plan
    }
  }

  /// See `ImageWork.start`.
  ///
  /// - `advances`: whether `advance` is called next, with the bytes behind those that were consumed.
  mutating func start(
    _ reservation: consuming Reservation?, renditionIDs: [String] = [], advances: Bool = false
  ) throws(PipelineError) {
    switch place {
    case .here: try work!.start(reservation, renditionIDs: renditionIDs)
    case .isolated(let work):
      self.reservation = consume reservation
      bufferedReservation = nil  // the plan's reservation includes the buffered bytes
      defer { if work.isReleased { processCharge = nil } }
      try work.start(renditionIDs: renditionIDs, advances: advances)
    }
  }

  mutating func advance(_ bytes: RawSpan, isLast: Bool) throws(PipelineError) -> Int {
    switch place {
    case .here: return try work!.advance(bytes, isLast: isLast)
    case .isolated(let work):
      noteWork()
      defer { if work.isReleased { processCharge = nil } }
      return try work.advance(bytes, isLast: isLast)
    }
  }

  mutating func push(_ bytes: RawSpan, isLast: Bool) throws(PipelineError) -> Bool {
    switch place {
    case .here: return try work!.push(bytes, isLast: isLast)
    case .isolated(let work):
      noteWork()
      defer { if work.isReleased { processCharge = nil } }
      return try work.push(bytes, isLast: isLast)
    }
  }

  mutating func takeOutput(of index: Int) -> [Data] {
    switch place {
    case .here: work!.takeOutput(of: index)
    case .isolated(let work): work.takeOutput(of: index)
    }
  }

  mutating func takeEnd(of index: Int) -> Result<ProcessingReport, PipelineError>? {
    switch place {
    case .here: work!.takeEnd(of: index)
    case .isolated(let work): work.takeEnd(of: index)
    }
  }

  /// Whether work is paused because enough output is buffered.
  var isPaused: Bool {
    mutating get {
      switch place {
      case .here: work!.state.isPaused
      case .isolated(let work): work.isPaused
      }
    }
  }

  /// Whether the outcome of every rendition was returned.
  var hasEnded: Bool {
    mutating get {
      switch place {
      case .here: work!.state.hasEnded
      case .isolated(let work): work.hasEnded
      }
    }
  }
}

extension ImageWork {
  /// Plans a result for each configuration; see `plan(_:followingByteCount:)`.
  fileprivate mutating func planned(
    _ configurations: [ProcessingConfiguration], followingByteCount: UInt64?
  ) throws(PipelineError) -> PlannedImage? {
    try plan(configurations, followingByteCount: followingByteCount)
    return plan.map { PlannedImage($0) }
  }

  // Mutating, as an optional value that cannot be copied is only accessible in place.
  fileprivate var state: (isPaused: Bool, hasEnded: Bool) { mutating get { (isPaused, hasEnded) } }
}
