internal import Admission
internal import FoundationEssentials
internal import ImagePipeline
internal import Synchronization
internal import Tracing

/// The processing of the images of one call of `ModelInfer`, each by an `ImageJob` of its own.
final class InferenceJob: Sendable {
  private let environment: WorkerEnvironment
  private let request: InferenceRequest
  private let rendition: Rendition
  private let caller: ImageCaller
  private let call: Cancellation
  /// Cancelled with the call, and when an image fails it.
  private let cancellation = Cancellation()
  private let batch: TensorBatch
  /// The outcomes of the images that did not fail the call, by index.
  private let outcomes = Mutex<[Int: InferenceOutcome]>([:])

  /// Creates the job of a call.
  ///
  /// - Parameters:
  ///   - request: The images.
  ///   - model: The model, which every image has the configuration of.
  ///   - environment: The worker's.
  ///   - caller: The client.
  ///   - call: The cancellation of the call.
  init(
    _ request: InferenceRequest, _ model: InferenceModel, environment: WorkerEnvironment, caller: ImageCaller,
    call: Cancellation
  ) {
    self.environment = environment
    self.request = request
    rendition = Rendition(
      index: nil, id: "", configuration: model.configuration, auxiliary: environment.overlays.value)
    self.caller = caller
    self.call = call
    batch = TensorBatch(
      rowCount: request.images.count, maxByteCount: environment.limits.maxMessageByteCount, budget: environment.memory
    ) { [request] shape, byteCount in
      try InferenceResponse(request, model, shape)
        .head(rowsByteCount: request.returnsTensor ? byteCount : nil)
    }
  }

  /// Processes all images, as many at a time as those of a batch stream.
  ///
  /// - Returns: The response.
  /// - Throws: The error of an image as an `IndexedImageError`, unless errors are reported in an output and another image
  ///   has a result; an error of the whole call as it is.
  func run() async throws -> ResponseMessage {
    let handler = call.addHandler { [cancellation] in cancellation.cancel() }
    defer { call.removeHandler(handler) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      do {
        for row in request.images.indices {
          if row >= environment.limits.maxImagesPerStream { try await group.next() }
          group.addTask { try await self.process(row) }
        }
        try await group.waitForAll()
      } catch {
        cancellation.cancel()
        throw error
      }
    }
    let outcomes = self.outcomes.withLock { outcomes in request.images.indices.compactMap { outcomes[$0] } }
    if let error = outcomes[0].error, outcomes.allSatisfy({ $0.error != nil }) {
      throw IndexedImageError(index: 0, error: error)
    }
    return try batch.take(
      withRows: request.returnsTensor, tail: InferenceResponse.tail(outcomes, outputs: request.outputs))
  }

  /// Processes one image.
  private func process(_ row: Int) async throws {
    let span = environment.tracer.startSpan("item", ofKind: .internal)
    defer { span.end() }
    span.attributes["imageworker.item_id"] = String(row)
    let sink = TensorSink(batch, row: row)
    do {
      try await ServiceContext.$current.withValue(span.context) { try await job(of: row, to: sink).run() }
      outcomes.withLock { $0[row] = sink.outcome }
    } catch {
      span.record(error)
      try note(error, of: row)
    }
  }

  private func job(of row: Int, to sink: TensorSink) -> ImageJob {
    let memory = environment.memory
    var caller = caller
    // The call was admitted for one image, whose message had not arrived.
    caller.isPromised = memory.receivesMessages && row == 0
    return ImageJob(
      [rendition], from: WholeImage(request.images[row], isCharged: memory.receivesMessages),
      to: sink, admission: memory, environment: environment, cancellation: cancellation, caller: caller)
  }

  /// Notes the error of an image.
  /// - Throws: The error, if it fails the call.
  private func note(_ error: any Error, of row: Int) throws {
    if let failure = batch.failure { throw failure }
    if (error as? PipelineError)?.code == .cancelled { throw error }
    guard request.reportsErrors else { throw IndexedImageError(index: row, error: error) }
    environment.metrics.failed(error, isCancelled: false)
    batch.clear(row)
    outcomes.withLock { $0[row] = .failure(error) }
  }
}
