internal import Admission
internal import FoundationEssentials
internal import ImagePipeline

extension WorkerEnvironment {
  /// Plans the result of an image from its first bytes, without decoding any of it.
  ///
  /// - `bytes`: the image, or a prefix of it that contains the header.
  /// - `auxiliary`: the images that overlays name.
  /// - Throws: `truncatedImage` with `neededByteCount` if the header is incomplete, and the errors of planning.
  func inspect(
    _ bytes: Data, _ configuration: ProcessingConfiguration, _ auxiliary: AuxiliaryImages, _ caller: ImageCaller,
    _ cancellation: Cancellation
  ) async throws(PipelineError) -> PlannedImage {
    let work = ImageWork(makeChannel(for: caller, cancellation, auxiliary, isPreview: false), memory: memory)
    try await work.helper?.prepare(isUpload: false, mayWait: true)
    let results = WorkRequest.Planning.Results.renditions([configuration])
    let planning = WorkRequest.Planning(
      results: results, lateOrientation: ImageReader.lateOrientation(of: bytes.bytes),
      countedFrames: ImageReader.frameCount(of: bytes.bytes), isInspection: true)
    var plan: PlannedImage
    var rest = bytes
    do throws(PipelineError) {
      repeat {
        let isLast = rest.count <= work.channel.maxByteCount && !ImageReader.isBeginning(bytes)
        let window = rest.prefix(work.channel.maxByteCount)
        rest = rest.dropFirst(try work.readHeader(window.bytes, isLast: isLast, planning))
        try work.chargeBuffered()
      } while work.plan == nil && !rest.isEmpty
      guard let planned = work.plan else {
        throw PipelineError(.truncatedImage, "the image ends before its header does")
      }
      plan = planned
    } catch {
      throw error.code == .truncatedImage ? ImageReader.incomplete(error, bytes.bytes) : error
    }
    var result = try plan.renditions[0].get()
    if let map = ImageReader.gainMap(of: bytes.bytes) {
      result.input.gainMap = map.displayed(orientation: result.input.orientation)
      plan.renditions[0] = .success(result)
    }
    return plan
  }

  /// Returns the facts of an image that is only inspected: those of a small result, which is discarded.
  /// - Parameters:
  ///   - bytes: The whole file.
  ///   - configuration: The configuration whose crop, rotation and flips apply.
  ///   - caller: The client that the image belongs to.
  ///   - charged: The image of the caller's account; `nil` if callers are not identified.
  ///   - cancellation: Ends the work.
  /// - Returns: The facts.
  /// - Throws: The errors of processing the image.
  func facts(
    of bytes: Data, _ configuration: ProcessingConfiguration, _ caller: ImageCaller, _ charged: CallerImage?,
    _ cancellation: Cancellation
  ) async throws -> ImageFacts? {
    let sink = FactsSink()
    let job = ImageJob(
      [Rendition(index: nil, id: "", configuration: configuration.forFactsAlone)],
      from: WholeImage(bytes, isCharged: memory.receivesMessages), to: sink,
      admission: memory, environment: self, cancellation: cancellation, caller: caller, charged: charged)
    try await job.run()
    return sink.facts
  }
}

/// Keeps the facts of a result, and nothing else of it.
private final class FactsSink: ResultSink {
  private(set) var facts: ImageFacts?

  func send(_ part: ResultPart) async throws {
    switch part.content {
    case .report(let report): facts = report.processing.facts
    case .header, .chunk: break
    case .failure(let error): throw error
    }
  }
}
