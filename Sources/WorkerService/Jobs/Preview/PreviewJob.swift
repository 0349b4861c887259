internal import FoundationEssentials
internal import ImagePipeline

/// The processing of one preview, from the bytes of its image to the parts of its result.
///
/// A preview is decoded separately from its image, so that it does not change the image's result. Every function returns
/// the parts that it completed. After an error the preview has ended.
final class PreviewJob {
  private enum Phase {
    case readingHeader
    /// The preview can be started in the memory that the plan requires.
    case planned(PlannedImage)
    /// The preview is being decoded. Its header is sent together with its first bytes; `nil` afterwards.
    case decoding(header: ImageInfo?)
    case ended
  }

  private let rendition: Rendition
  private let environment: WorkerEnvironment
  private var phase = Phase.readingHeader
  private var work: JobWork?
  /// The bytes that were supplied and not consumed, and whether they are the last.
  private var input = (bytes: Data(), isLast: false)
  /// The time since the image was requested, and the part of it that was spent waiting.
  var clock = JobClock()

  /// - `rendition`: the rendition of the preview.
  init(
    _ rendition: Rendition, environment: WorkerEnvironment, caller: ImageCaller, cancellation: Cancellation
  ) {
    self.rendition = rendition
    self.environment = environment
    work = JobWork(environment, caller: caller, cancellation: cancellation, isPreview: true)
  }

  /// Whether the preview is complete, has failed or was ended.
  var hasEnded: Bool { if case .ended = phase { true } else { false } }

  /// Whether decoding was started and has not ended.
  var isStarted: Bool { if case .decoding = phase { true } else { false } }

  /// The memory in bytes that the preview requires; `nil` unless it is planned and not started.
  var plannedByteCount: Int? {
    guard case .planned(let plan) = phase else { return nil }
    return Int(clamping: plan.workingSetByteCount)
  }

  /// Processes the next bytes of the image.
  func push(_ bytes: Data, isLast: Bool) throws(PipelineError) -> [ResultPart] {
    switch phase {
    case .readingHeader, .decoding:
      input = (bytes, isLast)
      return try advance()
    case .planned:
      // The result is planned at the same byte. The preview is either started then, or no longer useful.
      end()
      return []
    case .ended: return []
    }
  }

  /// Starts decoding, in memory that was reserved together with the result's; does nothing unless it is planned.
  func start() throws(PipelineError) -> [ResultPart] {
    guard case .planned(let plan) = phase else { return [] }
    phase = .decoding(header: try plan.renditions[0].get().output)
    try withWork { (work) throws(PipelineError) in try work.start(nil) }
    return try advance()
  }

  /// Releases the decoder and the buffered bytes.
  func end() {
    phase = .ended
    work = nil
    input = (Data(), false)
  }

  private func advance() throws(PipelineError) -> [ResultPart] {
    do throws(PipelineError) {
      try withWork { (work) throws(PipelineError) in try work.prepareNow() }
      repeat { try processWindow() } while !input.bytes.isEmpty && plannedByteCount == nil
      return try takeParts()
    } catch {
      end()
      throw error
    }
  }

  /// Processes one window of the available bytes, and plans the preview at the end of the header.
  private func processWindow() throws(PipelineError) {
    let window = input.bytes.prefix(SourceWindows.byteCount)
    let isLast = input.isLast && window.count == input.bytes.count
    let isStarted = isStarted
    let headerByteCount: Int? = try withWork { (work) throws(PipelineError) in
      guard !isStarted else {
        if try work.push(window.bytes, isLast: isLast) { input.bytes = Data() }
        return nil
      }
      let headerByteCount = try work.readHeader(window.bytes, isLast: isLast)
      try work.chargeBuffered()
      return headerByteCount
    }
    input.bytes = input.bytes.dropFirst(headerByteCount ?? window.count)
    guard headerByteCount != nil else { return }
    let plan = try withWork { [rendition, environment] (work) throws(PipelineError) in
      try work.planPreview(rendition.configuration, maxSide: environment.maxPreviewSide)
    }
    _ = try plan.renditions[0].get()
    phase = .planned(plan)
  }

  private func takeParts() throws(PipelineError) -> [ResultPart] {
    guard case .decoding(let header) = phase else { return [] }
    let (chunks, outcome) = try withWork { (work) in (work.takeOutput(of: 0), work.takeEnd(of: 0)) }
    let report = try outcome?.get()
    guard !chunks.isEmpty || report != nil else { return [] }
    phase = .decoding(header: nil)
    var contents = header.map { [ResultPart.Content.header($0)] } ?? []
    contents += chunks.map { .chunk($0) }
    if let report {
      contents.append(
        .report(ResultReport(processing: clock.timed(report), traceID: environment.currentTraceID)))
      end()
    }
    return contents.map { ResultPart($0, of: rendition) }
  }

  /// Lends the work to `body`, whose errors end it.
  private func withWork<Result>(
    _ body: (inout JobWork) throws(PipelineError) -> Result
  ) throws(PipelineError) -> Result {
    guard var lent = work.take() else {
      throw PipelineError(.internalDefect, "a preview was continued after its end")
    }
    let result = try body(&lent)
    work = consume lent
    return result
  }
}
