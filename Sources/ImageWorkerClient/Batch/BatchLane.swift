internal import FoundationEssentials
internal import GRPCCore
internal import WorkerProtocol

/// Keeps one stream open while there are items.
///
/// When the stream breaks, its items wait again, and the lane opens a stream to the worker that is best then. An item
/// during which streams broke repeatedly is sent alone, so that an image that breaks workers takes no other with it.
struct BatchLane: Sendable {
  let number: Int
  let batch: BatchState
  let workers: Workers

  /// Opens streams until no item is left.
  func run() async throws {
    while await batch.waitForWork(lane: number) {
      try await Task.sleep(for: workers.delay())
      try await workers.use { worker in
        batch.open(lane: number, worker: worker)
        let error = try await stream(to: worker)
        try Task.checkCancellation()
        guard let failure = batch.close(lane: number, error: error) else { return }
        workers.fail(worker, failure, isBatch: true)
        batch.noteFailure(lane: number, failure)
      }
    }
  }

  /// - Returns: the error that the stream ended with.
  /// - Throws: an error of the token.
  private func stream(to worker: Worker) async throws -> ImageWorkerError? {
    let metadata = try await workers.metadata()
    return await withTaskGroup(of: ImageWorkerError??.self) { group in
      group.addTask { await call(worker, metadata) }
      group.addTask {
        await batch.waitForCancellation(lane: number)
        return .none
      }
      // The first is the outcome of the call, or `nil` when the call is to be cancelled.
      while let outcome = await group.next() {
        group.cancelAll()
        if let outcome { return batch.stall(lane: number, worker) ?? outcome }
      }
      return nil
    }
  }

  private func call(_ worker: Worker, _ metadata: Metadata) async -> ImageWorkerError?? {
    do {
      try await worker.stub.batchProcess(
        metadata: metadata, options: Workers.options(timeout: nil),
        requestProducer: { writer in
          while let shipment = await batch.next(lane: number) { try await send(shipment, to: writer) }
        },
        onResponse: { response in
          for try await message in response.messages { receive(message, from: worker) }
        })
      return .some(nil)
    } catch {
      return .some(ImageWorkerError(error, of: worker) ?? .lost("\(error)"))
    }
  }

  private func send(
    _ shipment: BatchShipment, to writer: RPCWriter<Imageworker_V1_BatchProcessRequest>
  ) async throws {
    let id = shipment.id
    var isStarted = false
    do {
      let reader = try shipment.upload.open()
      let head = try await reader.readExactly(Upload.wholeByteCount + 1)
      var start = shipment.start
      if (1...Upload.wholeByteCount).contains(head.count) {
        start.image = head
        return try await writer.write(.item(id, .start(start)))
      }
      try await writer.write(.item(id, .start(start)))
      isStarted = true
      for chunk in head.chunks(of: Upload.chunkByteCount) { try await writer.write(.item(id, .chunk(chunk))) }
      while batch.isWanted(id, lane: number) {
        let chunk = try await reader.read(Upload.chunkByteCount)
        if chunk.isEmpty { break }
        try await writer.write(.item(id, .chunk(chunk)))
        batch.noteSending(lane: number)
      }
    } catch let error as SourceError {
      batch.fail(id, lane: number, error)
    }
    if isStarted { try await writer.write(.item(id, .end(Imageworker_V1_BatchItemEnd()))) }
  }

  private func receive(_ message: Imageworker_V1_BatchProcessResponse, from worker: Worker) {
    guard let end = batch.receive(message.itemID, ResponsePart(message), lane: number) else { return }
    if case .failure(let error) = end, error.isEnd {
      workers.fail(worker, error, isBatch: true)
    } else {
      workers.succeed(worker)
    }
  }
}
