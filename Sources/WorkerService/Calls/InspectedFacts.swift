internal import Admission
internal import FoundationEssentials
internal import ImagePipeline

/// The facts of an image that is only inspected: those of a small result, which is discarded.
struct InspectedFacts {
  let environment: WorkerEnvironment
  let caller: ImageCaller
  let cancellation: Cancellation

  /// Decodes an image at a small size.
  /// - Parameters:
  ///   - bytes: The whole file.
  ///   - configuration: The configuration whose crop, rotation and flips apply.
  /// - Returns: The facts.
  /// - Throws: The errors of processing the image.
  func facts(_ bytes: Data, configuration: ProcessingConfiguration) async throws -> ImageFacts? {
    let sink = FactsSink()
    var caller = caller
    caller.isPromised = environment.memory.receivesMessages
    let job = ImageJob(
      [Rendition(index: nil, id: "", configuration: configuration.forFactsAlone)],
      from: WholeImage(bytes, isCharged: environment.memory.receivesMessages), to: sink,
      admission: QueuedAdmission(memory: environment.memory, cancellation: cancellation), environment: environment,
      cancellation: cancellation, caller: caller)
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
