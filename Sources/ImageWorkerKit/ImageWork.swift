internal import Admission
internal import ImageCodecs
internal import ImagePipeline

/// The work on one image: drives its server with the bytes that arrive, and charges the memory that it needs.
///
/// It belongs to one task or thread at a time.
final class ImageWork {
  /// The size in bytes that readers may buffer without a charge; enough for formats whose header comes first.
  private static let headerByteCount = 256 * 1024

  let cancellation: Cancellation
  /// The server of the image; `nil` after an error.
  private var server: ImageServer?
  private let memory: MemoryBudget
  private var planning: WorkRequest.Planning
  private let clock = JobClock()
  /// The memory charged for what readers buffer, until the image is started.
  private var buffered: Hold
  private var reservation: Reservation?
  private var failure: PipelineError?
  /// The properties of the image and of its result; `nil` until the header is complete.
  private(set) var plan: PlannedResult?
  private var reservedByteCount = 0
  /// The report; `nil` until the result is complete.
  private(set) var report: ImagePipeline.ProcessingReport?
  /// Whether the unconsumed bytes must be supplied again, because enough output is buffered.
  private(set) var isPaused = false
  /// Whether decoding was started.
  private(set) var isStarted = false

  init(
    _ configuration: ImagePipeline.ProcessingConfiguration, _ limits: ImageLimits, _ memory: MemoryBudget,
    _ cancellation: Cancellation, overlays: AuxiliaryImages
  ) {
    self.memory = memory
    self.cancellation = cancellation
    server = ImageServer(limits: limits, cancellation: cancellation, tracing: TraceTarget(), auxiliary: overlays)
    planning = WorkRequest.Planning(results: .renditions([configuration]))
    buffered = Hold(budget: memory)
  }

  // MARK: Steps

  /// Notes what only the whole file shows.
  func noteFile(_ file: RawSpan, countsFrames: Bool = false) {
    planning.lateOrientation = ImageReader.lateOrientation(of: file)
    if countsFrames || planning.results.countsFromEnd { planning.countedFrames = ImageReader.frameCount(of: file) }
  }

  /// Reads the next bytes of the header, and plans the result once it is complete.
  /// - Returns: The number of consumed bytes; all of them while there is no plan.
  func readHeader(_ bytes: RawSpan, isLast: Bool) throws(PipelineError) -> Int {
    try sticky { () throws(PipelineError) in
      try cancellation.check()
      planning.followingByteCount = isLast ? 0 : nil
      let response = try serve(.readHeader(planning), bytes, isLast: isLast) { _ in }
      if response.bufferedByteCount > Self.headerByteCount { try buffered.grow(to: response.bufferedByteCount) }
      if let planned = response.plan {
        plan = try planned.renditions[0].get()
        reservedByteCount = Int(clamping: planned.reservedByteCount)
      } else if isLast {
        throw PipelineError(.truncatedImage, "the image ends before its header does")
      }
      return response.consumedByteCount
    }
  }

  /// Waits for the memory of the plan, and starts decoding.
  func start() async throws(PipelineError) {
    do throws(PipelineError) {
      try begin(with: await memory.reserve(reservedByteCount, cancellation: cancellation))
    } catch { throw fail(error) }
  }

  /// Starts decoding if there is memory for the plan.
  func startNow() throws(PipelineError) {
    try sticky { () throws(PipelineError) in try begin(with: memory.reserveNow(reservedByteCount)) }
  }

  private func begin(with reservation: consuming Reservation) throws(PipelineError) {
    self.reservation = consume reservation
    buffered.release()  // the reservation includes the buffered bytes
    _ = try serve(.start(renditionIDs: []), RawSpan(), isLast: false) { _ in }
    isStarted = true
  }

  /// Processes the next bytes until they are consumed, or until enough output was emitted.
  /// - Returns: The number of consumed bytes.
  func advance(_ bytes: RawSpan, isLast: Bool, output: (RawSpan) -> Void) throws(PipelineError) -> Int {
    try sticky { () throws(PipelineError) in
      try cancellation.check()
      let response = try serve(.advance, bytes, isLast: isLast, output)
      isPaused = response.isPaused
      if let (_, outcome) = response.ends.first {
        report = clock.timed(try outcome.get())
        reservation = nil
      }
      return response.consumedByteCount
    }
  }

  private func serve(
    _ request: WorkRequest, _ bytes: RawSpan, isLast: Bool, _ output: (RawSpan) -> Void
  ) throws(PipelineError) -> WorkResponse {
    guard let server else { throw PipelineError(.internalDefect, "an image was processed after its end") }
    return try server.serve(request, bytes, isLast: isLast) { output($1) }
  }

  // MARK: Errors

  /// Runs a step; an error is thrown by all later steps, too.
  private func sticky<Value>(_ body: () throws(PipelineError) -> Value) throws(PipelineError) -> Value {
    if let failure { throw failure }
    do { return try body() } catch { throw fail(error) }
  }

  private func fail(_ error: PipelineError) -> PipelineError {
    failure = error
    server = nil
    buffered.release()
    reservation = nil
    return error
  }
}

/// Whole images and pushed bytes.
extension ImageWork {
  /// Processes the next bytes on the calling thread.
  func push(_ bytes: RawSpan, isLast: Bool, output: (RawSpan) -> Void) throws(PipelineError) {
    var rest = bytes
    if plan == nil {
      rest = rest.extracting(droppingFirst: try readHeader(rest, isLast: isLast))
      guard plan != nil else { return }
    }
    if !isStarted { try startNow() }
    while report == nil, isLast || isPaused || !rest.isEmpty {
      rest = rest.extracting(droppingFirst: try advance(rest, isLast: isLast, output: output))
    }
  }

  /// Processes a whole image, waiting for its memory.
  func process(_ image: [UInt8]) async throws(PipelineError) -> ProcessedImage {
    noteFile(image.span.bytes)
    let consumed = try readHeader(image.span.bytes, isLast: true)
    try await start()
    return try finish(image.span.bytes.extracting(droppingFirst: consumed))
  }

  /// Processes a whole image without waiting for memory.
  func processNow(_ image: [UInt8]) throws(PipelineError) -> ProcessedImage {
    noteFile(image.span.bytes)
    return try finish(image.span.bytes)
  }

  /// Processes the last bytes of the image.
  func finish(_ bytes: RawSpan) throws(PipelineError) -> ProcessedImage {
    var output: [UInt8] = []
    try push(bytes, isLast: true) { output.append($0) }
    guard let report else { throw PipelineError(.internalDefect, "an image has ended without a report") }
    return ProcessedImage(bytes: output, report: ProcessingReport(report))
  }

  /// Returns the properties of the image whose first bytes these are.
  func inspect(_ bytes: [UInt8]) throws(PipelineError) -> ImagePipeline.ImageInfo {
    noteFile(bytes.span.bytes, countsFrames: true)
    planning.isInspection = true
    do throws(PipelineError) {
      _ = try readHeader(bytes.span.bytes, isLast: !ImageReader.isBeginning(bytes))
      guard var input = plan?.input else {
        throw PipelineError(.truncatedImage, "the image ends before its header does")
      }
      if let map = ImageReader.gainMap(of: bytes.span.bytes) {
        input.gainMap = map.displayed(orientation: input.orientation)
      }
      return input
    } catch {
      throw error.code == .truncatedImage ? ImageReader.incomplete(error, bytes.span.bytes) : error
    }
  }

  /// Runs `body`; cancels the work if the task is cancelled meanwhile.
  func cancelledWithTask<Value>(_ body: () async -> Value) async -> Value {
    let cancellation = cancellation
    return await withTaskCancellationHandler(operation: body) { cancellation.cancel() }
  }
}
