internal import FoundationEssentials
internal import ImagePipeline

/// Sends a preview of an image's result, then the result's parts once the preview has ended.
///
/// The preview is decoded separately from the same bytes, so that it does not change the result. It is best effort: an
/// error that concerns the preview alone ends the preview, and the result continues.
final class PreviewFirstSink: ResultSink {
  /// The state of the preview.
  private enum Phase {
    case readingHeader
    /// The preview can be started in the memory that the plan requires.
    case planned(PlannedImage)
    /// The preview is being decoded.
    ///
    /// Its header is sent together with its first bytes.
    case decoding(header: ImageInfo)
    case sending
    case ended
  }

  private let next: any ResultSink
  private let rendition: Rendition
  private let environment: WorkerEnvironment
  private let cancellation: Cancellation
  private var phase = Phase.readingHeader
  private var work: JobWork?
  private var clock = JobClock()
  // The bytes of the image that have arrived and that the preview has not consumed.
  private var bytes = Data()
  private var isLast = false
  // Parts of the result, buffered until the preview has ended.
  private var buffered: [ResultPart] = []
  private var bufferedByteCount = 0
  private var reservation: Hold

  /// The maximum memory of a part in addition to its bytes.
  private static let partByteCount = 256

  /// Creates a sink that forwards to `next`.
  ///
  /// - `rendition`: the rendition of the preview.
  init(_ next: any ResultSink, preview rendition: Rendition, environment: WorkerEnvironment, cancellation: Cancellation)
  {
    self.next = next
    self.rendition = rendition
    self.environment = environment
    self.cancellation = cancellation
    work = JobWork(environment, cancellation: cancellation, isPreview: true)
    reservation = Hold(budget: environment.memory)
  }

  private var hasEnded: Bool { if case .ended = phase { true } else { false } }

  private var isStarted: Bool {
    switch phase {
    case .decoding, .sending: true
    case .readingHeader, .planned, .ended: false
    }
  }

  /// The memory in bytes that the preview requires; `nil` unless it is planned and not started.
  var plannedByteCount: Int? {
    guard case .planned(let plan) = phase else { return nil }
    return Int(clamping: plan.workingSetByteCount)
  }

  // MARK: The preview

  /// Processes the next bytes of the image and sends the preview's output.
  func push(_ bytes: Data, isLast: Bool) async throws {
    switch phase {
    case .readingHeader, .decoding, .sending:
      (self.bytes, self.isLast) = (bytes, isLast)
      try await advance()
    // The result is planned at the same byte. The preview is either started then, or no longer useful.
    case .planned: discard()
    case .ended: break
    }
  }

  /// Starts decoding, in memory that was reserved together with the result's.
  func start(_ clock: JobClock) async throws {
    guard case .planned(let plan) = phase else { return }
    self.clock = clock
    do throws(PipelineError) {
      phase = .decoding(header: try plan.renditions[0].get().output)
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

  /// Processes the available bytes: all of them, or until the preview must be started.
  private func decode() throws(PipelineError) {
    try work!.prepareNow()
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
      let plan = try work!.planPreview(rendition.configuration, maxSide: environment.maxPreviewSide)
      phase = .planned(plan)
      _ = try plan.renditions[0].get()
      return
    } while !bytes.isEmpty
  }

  /// Ends the preview if it has not ended, and sends the buffered parts.
  func end(with error: PipelineError) async throws {
    guard !hasEnded else { return }
    try cancellation.check()
    discard()
    environment.metrics.ended(previewWith: error)
    try await sendBuffered()
  }

  /// Ends the preview, which is not started yet, to release its memory for the image.
  /// - Returns: Whether there may be room now.
  func makeRoom(after error: PipelineError) -> Bool {
    guard !hasEnded else { return false }
    discard()
    environment.metrics.ended(previewWith: error)
    return true
  }

  /// Ends the preview because its image failed.
  ///
  /// The available parts of the result are sent before the error, as they are without a preview.
  func abandon(after error: PipelineError) async {
    guard isStarted else { return discard() }
    discard()
    environment.metrics.ended(previewWith: error)
    // An error of sending these parts matters less than the image's own error.
    if !cancellation.isCancelled { try? await sendBuffered() }
  }

  /// Releases the preview's decoder and buffered bytes.
  private func discard() {
    phase = .ended
    work = nil
    bytes = Data()
  }

  // MARK: The result

  func send(_ part: ResultPart) async throws {
    // A complete result makes the preview useless.
    if case .report = part.content { try await end(with: .cancelled) }
    guard !hasEnded else { return try await next.send(part) }
    do throws(PipelineError) { try buffer(part) } catch {
      try await end(with: error)
      try await next.send(part)
    }
  }

  /// Buffers a part of the result.
  /// - Throws: `overloaded` or `limitExceeded` if there is no room for the part.
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
