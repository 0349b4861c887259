internal import FoundationEssentials
internal import ImagePipeline

/// Sends a preview of an image's result first, and the result's parts when the preview has ended.
///
/// The preview is decoded separately from the result, from the same bytes, so that the result is what it would be without.
/// It is best effort: whatever goes wrong with it alone ends it, and the result goes on.
final class PreviewFirstSink: ResultSink {
  /// How far the preview is.
  private enum Phase {
    case readingHeader
    /// It can be started, in the memory that the plan asks for.
    case planned(ImagePlan)
    /// The first bytes of its result come with its header.
    case decoding(header: ImageInfo)
    case sending
    case ended
  }

  private let next: any ResultSink
  private let rendition: Rendition
  private let environment: WorkerEnvironment
  private let cancellation: Cancellation
  private var phase = Phase.readingHeader
  private var work: ImageWork?
  private var clock = JobClock()
  // What the preview has not consumed of the bytes that are here.
  private var bytes = Data()
  private var isLast = false
  // Parts of the result, until the preview has ended.
  private var buffered: [ResultPart] = []
  private var bufferedByteCount = 0
  private var reservation: Hold

  /// The most that a part takes in addition to its bytes.
  private static let partByteCount = 256

  /// - `rendition`: that of the preview.
  init(_ next: any ResultSink, preview rendition: Rendition, environment: WorkerEnvironment, cancellation: Cancellation)
  {
    self.next = next
    self.rendition = rendition
    self.environment = environment
    self.cancellation = cancellation
    work = ImageWork(
      limits: environment.limits.image, memory: environment.memory, cancellation: cancellation,
      tracing: TraceTarget(tracer: environment.tracer, isPreview: true))
    reservation = Hold(budget: environment.memory)
  }

  private var hasEnded: Bool { if case .ended = phase { true } else { false } }

  private var isStarted: Bool {
    switch phase {
    case .decoding, .sending: true
    case .readingHeader, .planned, .ended: false
    }
  }

  /// The memory that the preview needs, when that is known and it was not started.
  var plannedByteCount: Int? {
    if case .planned(let plan) = phase { Int(clamping: plan.workingSetByteCount) } else { nil }
  }

  // MARK: The preview

  /// Takes the next bytes of the image, and sends what they complete of the preview.
  func push(_ bytes: Data, isLast: Bool) async throws {
    switch phase {
    case .readingHeader, .decoding, .sending:
      (self.bytes, self.isLast) = (bytes, isLast)
      try await advance()
    // The result is planned at the same byte, and the preview is then started, or of no use.
    case .planned: discard()
    case .ended: break
    }
  }

  /// Begins decoding, in memory that was reserved together with the result's.
  func start(_ clock: JobClock) async throws {
    guard case .planned(let plan) = phase else { return }
    self.clock = clock
    do throws(PipelineError) {
      phase = .decoding(header: try plan.renditions[0].get().outputInfo)
      try work!.start(nil)
    } catch { return try await end(with: error) }
    try await advance()
  }

  private func advance() async throws {
    do throws(PipelineError) { try decode() } catch { return try await end(with: error) }
    guard isStarted else { return }
    let (chunks, outcome) = (work!.takeOutput(of: 0), work!.takeEnd(of: 0))
    if case .failure(let error)? = outcome { return try await end(with: error) }
    if case .decoding(let header) = phase, !chunks.isEmpty || outcome != nil {
      phase = .sending
      try await next.send(ResultPart(.header(header), of: rendition))
    }
    for chunk in chunks { try await next.send(ResultPart(.chunk(chunk), of: rendition)) }
    guard case .success(let report)? = outcome else { return }
    let timed = ResultReport(processing: clock.timed(report), traceID: environment.currentTraceID)
    try await next.send(ResultPart(.report(timed), of: rendition))
    discard()
    try await sendBuffered()
  }

  /// Works on the bytes that are here: all of them, or until the preview has to be started.
  private func decode() throws(PipelineError) {
    repeat {
      let window = bytes.prefix(SourceWindows.byteCount)
      let isLastWindow = isLast && window.count == bytes.count
      if isStarted {
        let isDone = try work!.push(window.bytes, isLast: isLastWindow)
        bytes = isDone ? Data() : bytes.dropFirst(window.count)
        continue
      }
      let headerByteCount = try work!.readHeader(window.bytes, isLast: isLastWindow)
      try work!.chargeBuffered()
      bytes = bytes.dropFirst(headerByteCount ?? window.count)
      guard headerByteCount != nil else { continue }
      let plan = try work!.planPreview(rendition.configuration)
      phase = .planned(plan)
      _ = try plan.renditions[0].get()
      return
    } while !bytes.isEmpty
  }

  /// Ends the preview, if it has not ended, and sends what waited for it.
  func end(with error: PipelineError) async throws {
    guard !hasEnded else { return }
    try cancellation.check()
    discard()
    environment.metrics.ended(previewWith: error)
    try await sendBuffered()
  }

  /// Ends the preview, which was not started, because there is no room for the image.
  /// - Returns: whether there may be room now.
  func makeRoom(after error: PipelineError) -> Bool {
    guard !hasEnded else { return false }
    discard()
    environment.metrics.ended(previewWith: error)
    return true
  }

  /// Ends the preview because its image failed: what was ready of the result is sent before the error, as without one.
  func abandon(after error: PipelineError) async {
    guard isStarted else { return discard() }
    discard()
    environment.metrics.ended(previewWith: error)
    // What keeps these parts from being sent is less important than the image's own error.
    if !cancellation.isCancelled { try? await sendBuffered() }
  }

  /// Releases all that the preview needed.
  private func discard() {
    phase = .ended
    work = nil
    bytes = Data()
  }

  // MARK: The result

  func send(_ part: ResultPart) async throws {
    // Nobody needs a preview of a result that is complete.
    if case .report = part.content { try await end(with: .cancelled) }
    guard !hasEnded else { return try await next.send(part) }
    do throws(PipelineError) { try buffer(part) } catch {
      try await end(with: error)
      try await next.send(part)
    }
  }

  /// - Throws: `overloaded`, `limitExceeded` when there is no room for the part.
  private func buffer(_ part: ResultPart) throws(PipelineError) {
    bufferedByteCount += Self.partByteCount
    if case .chunk(let bytes) = part.content { bufferedByteCount += bytes.count }
    try reservation.grow(to: bufferedByteCount)
    buffered.append(part)
  }

  private func sendBuffered() async throws {
    let parts = buffered
    buffered = []
    defer { reservation.release() }
    for part in parts { try await next.send(ResultPart(part.content, of: part.rendition)) }
  }
}
