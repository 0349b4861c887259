internal import Admission
internal import FoundationEssentials
internal import ImagePipeline

/// The processing of one preview, from the bytes of its image to the parts of its result.
///
/// A preview is decoded separately from its image, so that it does not change the image's result. Every function returns
/// the parts that it completed. After an error the preview has ended.
final class PreviewJob {
  private enum Phase {
    case readingHeader(ImageWork)
    /// The preview can be started in the memory that the plan requires.
    case planned(PlannedImage, ImageWork)
    /// The preview is being decoded. Its header is sent together with its first bytes; `nil` afterwards.
    case decoding(ImageWork, header: ImageInfo?)
    case ended
  }

  private let rendition: Rendition
  private let environment: WorkerEnvironment
  /// The image's own source, of which nothing is read; see `ImageSource.lateOrientation`.
  private let source: any ImageSource
  private lazy var lateOrientation = source.lateOrientation
  private var phase: Phase
  /// The bytes that were supplied and not consumed, and whether they are the last.
  private var input = (bytes: Data(), isLast: false)
  /// The time since the image was requested, and the part of it that was spent waiting.
  var clock = JobClock()

  /// - `rendition`: the rendition of the preview.
  /// - `source`: the source of the image.
  init(
    _ rendition: Rendition, of source: any ImageSource, environment: WorkerEnvironment, caller: ImageCaller,
    cancellation: Cancellation
  ) {
    self.rendition = rendition
    self.source = source
    self.environment = environment
    let channel = environment.makeChannel(for: caller, cancellation, rendition.auxiliary, isPreview: true)
    phase = .readingHeader(ImageWork(channel, memory: environment.memory))
  }

  /// Whether the preview is complete, has failed or was ended.
  var hasEnded: Bool { if case .ended = phase { true } else { false } }

  /// Whether decoding was started and has not ended.
  var isStarted: Bool { if case .decoding = phase { true } else { false } }

  /// The memory in bytes that the preview requires; `nil` unless it is planned and not started.
  var plannedByteCount: Int? {
    guard case .planned(let plan, _) = phase else { return nil }
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
    guard case .planned(let plan, let work) = phase else { return [] }
    phase = .decoding(work, header: try plan.renditions[0].get().output)
    return try advance()
  }

  /// Releases the decoder and the buffered bytes.
  func end() {
    phase = .ended
    input = (Data(), false)
  }

  /// Processes the available bytes, to the end of the header or as far as they reach.
  private func advance() throws(PipelineError) -> [ResultPart] {
    do throws(PipelineError) {
      while try processWindow() {}
      return try takeParts()
    } catch {
      end()
      throw error
    }
  }

  /// Processes one window of the available bytes, and plans the preview at the end of the header.
  /// - Returns: Whether to call it again.
  private func processWindow() throws(PipelineError) -> Bool {
    switch phase {
    case .readingHeader(let work):
      try work.helper?.prepareNow(isUpload: source.whole == nil)
      let results = WorkRequest.Planning.Results.preview(
        rendition.configuration, maxSide: environment.maxPreviewSide)
      let planning = WorkRequest.Planning(
        results: results, lateOrientation: lateOrientation,
        countedFrames: results.countsFromEnd ? source.frameCount : nil)
      let (bytes, isLast) = window(of: work)
      consume(try work.readHeader(bytes.bytes, isLast: isLast, planning))
      try work.chargeBuffered()
      guard let plan = work.plan else { return !input.bytes.isEmpty }
      _ = try plan.renditions[0].get()
      phase = .planned(plan, work)
      return false
    case .decoding(let work, _):
      if !work.isStarted { try work.start(nil) }
      let (bytes, isLast) = window(of: work)
      consume(try work.advance(bytes.bytes, isLast: isLast))
      return !work.isComplete && (work.isPaused || !input.bytes.isEmpty)
    case .planned, .ended: return false
    }
  }

  private func window(of work: ImageWork) -> (bytes: Data, isLast: Bool) {
    let bytes = input.bytes.prefix(work.channel.maxByteCount)
    return (bytes, input.isLast && bytes.count == input.bytes.count)
  }

  private func consume(_ byteCount: Int) { input.bytes = input.bytes.dropFirst(byteCount) }

  private func takeParts() throws(PipelineError) -> [ResultPart] {
    guard case .decoding(let work, let header) = phase else { return [] }
    let chunks = work.results.takeOutput(of: 0)
    let report = try work.results.takeEnd(of: 0)?.get()
    guard !chunks.isEmpty || report != nil else { return [] }
    phase = .decoding(work, header: nil)
    var contents = header.map { [ResultPart.Content.header($0)] } ?? []
    contents += chunks.map { .chunk($0) }
    if let report {
      contents.append(
        .report(ResultReport(processing: clock.timed(report), traceID: environment.currentTraceID)))
      end()
    }
    return contents.map { ResultPart($0, of: rendition) }
  }
}
