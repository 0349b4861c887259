internal import AsyncAlgorithms
internal import FoundationEssentials
internal import GRPCCore
internal import GRPCProtobuf
internal import ImagePipeline
internal import Synchronization
internal import Tracing
internal import WorkerProtocol

/// One `BatchProcess` call: takes the stream apart into items, works on them side by side, and gives each exactly one
/// end.
///
/// An item's error never touches another item.
struct BatchStream: Sendable {
  typealias Request = Imageworker_V1_BatchProcessRequest
  typealias Response = Imageworker_V1_BatchProcessResponse

  private let environment: WorkerEnvironment
  private let responses: RPCWriter<Response>
  private let cancellation: Cancellation
  private let admission: StreamAdmission
  private let items = BatchItems()

  private static let longestItemID = 256
  /// Larger chunks, which an upload holds while it waits for its turn, count as held.
  private static let uncountedChunkByteCount = 1 << 20

  init(environment: WorkerEnvironment, responses: RPCWriter<Response>, cancellation: Cancellation) {
    self.environment = environment
    self.responses = responses
    self.cancellation = cancellation
    admission = StreamAdmission(memory: environment.memory)
  }

  /// Serves the stream until the client has sent everything and every item has ended, or until a drain finds the
  /// stream idle.
  func run(_ requests: RPCAsyncSequence<Request, any Error>) async throws {
    let isDrained = try await withThrowingTaskGroup(of: Bool.self) { watchers in
      watchers.addTask {
        try await serveItems(requests)
        return false
      }
      watchers.addTask { await drainedWhileIdle() }
      defer { watchers.cancelAll() }
      return try await watchers.next() ?? false
    }
    if isDrained { throw WireError.draining }
  }

  /// Whether the worker began to drain and the stream has nothing left to finish.
  ///
  /// Returns false when cancelled.
  private func drainedWhileIdle() async -> Bool {
    let handler = environment.drain.addHandler { items.noteChange() }
    // When the drain's time is over, the work is cancelled, and so are uploads of which nothing comes.
    let stop = cancellation.addHandler { items.abandonUploads() }
    defer {
      environment.drain.removeHandler(handler)
      cancellation.removeHandler(stop)
    }
    for await _ in items.itemEnds where environment.drain.isDraining && items.isEmpty { return true }
    return false
  }

  private func serveItems(_ requests: RPCAsyncSequence<Request, any Error>) async throws {
    try await withThrowingDiscardingTaskGroup { group in
      do {
        for try await request in requests {
          if let work = try await accept(request) { group.addTask(operation: work) }
        }
      } catch {
        // The client is gone: so is the reason to go on with its items.
        cancellation.cancel()
        items.abandonUploads()
        throw error
      }
      items.abandonUploads()
    }
  }

  /// Takes one part.
  ///
  /// What it returns is the work of an item that begins with it.
  private func accept(_ request: Request) async throws -> (@Sendable () async throws -> Void)? {
    let id = request.itemID
    guard !id.isEmpty, id.utf8.count <= Self.longestItemID else {
      let message = "item_id has \(id.utf8.count) bytes; it must have between 1 and \(Self.longestItemID)"
      // Marked as cut, so that it is not another item's.
      let name = id.isEmpty ? "" : String(decoding: id.utf8.prefix(64), as: UTF8.self) + "…"
      try await emit(PipelineError(.invalidField, message, field: "item_id"), for: name)
      return nil
    }
    switch (request.part, items.standing(of: id)) {
    case (_, .open) where items.isClaimed(id): break  // it has its end already
    case (.start(let start), .new): return try await begin(id, start)
    case (.start, .open):
      try await end(id, with: PipelineError(.invalidField, "item_id is in use by an open upload", field: "item_id"))
    case (.start, .working), (.start, .ended):
      try await emit(
        PipelineError(.invalidField, "item_id was used before on this stream", field: "item_id"), for: id)
    case (.chunk(let bytes), .open(let upload)):
      do {
        try environment.limits.check(message: bytes)
        await upload.chunks.send(bytes)
      } catch { try await end(id, with: error) }
    case (.end, .open): items.complete(id)
    case (.chunk, .ended), (.end, .ended), (.chunk, .working), (.end, .working): break
    case (.chunk, .new), (.end, .new):
      try await end(id, with: PipelineError(.invalidField, "item_id names no item that was started", field: "item_id"))
    case (nil, .new), (nil, .open):
      try await end(id, with: PipelineError(.invalidField, "part is not set", field: "part"))
    case (nil, .working), (nil, .ended): break
    }
    return nil
  }

  private func begin(
    _ id: String, _ start: Imageworker_V1_BatchItemStart
  ) async throws -> (@Sendable () async throws -> Void)? {
    let renditions: [Rendition]
    do {
      if environment.drain.isDraining { throw WireError.draining }
      try environment.limits.check(message: start.image)
      try BatchItem.check(key: start.previewKey)
      renditions = try environment.renditions(of: start)
      if start.image.isEmpty, items.openCount(besides: start.previewKey) >= environment.limits.maxOpenUploads {
        throw PipelineError(
          .overloaded, "\(environment.limits.maxOpenUploads) uploads are open on this stream; finish one first")
      }
    } catch {
      try await end(id, with: error)
      return nil
    }
    let item = BatchItem(id: id, key: start.previewKey, stream: cancellation)
    await items.enter(item, limit: environment.limits.maxOpenUploads)
    guard start.image.isEmpty else {
      await items.beginWhole(id, limit: environment.limits.maxPicturesPerStream)
      return { try await processWhole(item, start.image, renditions) }
    }
    let upload = items.open(id)
    return { try await processUpload(item, upload, renditions) }
  }

  private func processWhole(_ item: BatchItem, _ image: Data, _ renditions: [Rendition]) async throws {
    defer { items.endWhole(item.id) }
    try await process(item, renditions) { [admission] (workingSet) throws(PipelineError) in
      try await admission.admitComplete(workingSet + image.count, cancellation: item.cancellation)
    } run: { processor in
      try await processor.run(whole: image)
    }
  }

  private func processUpload(_ item: BatchItem, _ upload: Upload, _ renditions: [Rendition]) async throws {
    defer { items.end(item.id) }
    let hold = UploadAdmission(admission)
    defer { hold.release() }
    var chunkHold = Hold(budget: environment.memory)
    var chunks = upload.chunks.makeAsyncIterator()
    try await process(item, renditions) { (workingSet) throws(PipelineError) in
      try await hold.admit(workingSet, isComplete: upload.hasEnded, cancellation: item.cancellation)
    } run: { processor in
      try await processor.run(upload: { upload.hasEnded }) {
        if let bytes = await chunks.next() {
          if bytes.count > Self.uncountedChunkByteCount { try chunkHold.grow(to: bytes.count) }
          return (bytes, isLast: false)
        }
        hold.release()
        try cancellation.check()
        try item.cancellation.check()
        guard upload.hasEnded else {
          throw PipelineError(.truncatedImage, "the stream ended before the item's end", field: "image")
        }
        return (Data(), isLast: true)
      }
    }
  }

  /// Works on one item and gives it its one end.
  private func process(
    _ item: BatchItem, _ renditions: [Rendition],
    admit: @escaping @Sendable (Int) async throws(PipelineError) -> Reservation,
    run: (PictureProcessor) async throws -> Void
  ) async throws {
    defer { items.leave(item) }
    let ends = EndCount(of: renditions.count)
    let outbox = Outbox(responses)
    let processor = PictureProcessor(
      environment: environment, renditions: renditions, cancellation: item.cancellation, admit: admit,
      emit: { part, rendition, isMoreReady in
        try item.cancellation.check()
        let isEnd = part.isLast && !rendition.isPreview && ends.isLast()
        try claim(item.id, isEnd: isEnd)
        try await outbox.send(Response(id: item.id, part, of: rendition), isMoreReady: isMoreReady)
      })
    let span = environment.tracer.startSpan("item", ofKind: .internal)
    defer { span.end() }
    span.attributes["imageworker.item_id"] = item.id
    do {
      try await ServiceContext.$current.withValue(span.context) { try await run(processor) }
    } catch {
      let error = environment.drain.reason(item.reason(error))
      span.record(error)
      if items.claimEnd(item.id) { try await emit(error, for: item.id) }
    }
  }

  /// Gives an item its end before its picture had one.
  ///
  /// Whoever works on it notices at its next bytes.
  private func end(_ id: String, with error: any Error) async throws {
    guard items.claimEnd(id) else { return }
    try await emit(error, for: id)
    if case .open = items.standing(of: id) { items.abandonUpload(id) } else { items.end(id) }
  }

  /// Makes sure that nothing is sent of an item behind its end.
  /// - `isEnd`: whether the item ends with what is to be sent.
  private func claim(_ id: String, isEnd: Bool) throws {
    if isEnd {
      guard items.claimEnd(id) else { throw PipelineError.cancelled }
    } else if items.isClaimed(id) {
      throw PipelineError.cancelled
    }
  }

  private func emit(_ error: any Error, for id: String) async throws {
    environment.metrics.failed(error, isCancelled: cancellation.isCancelled)
    try await responses.write(Response(id: id, error: error))
  }
}

/// The renditions of one item that have not ended.
private final class EndCount: Sendable {
  private let left: Mutex<Int>

  init(of count: Int) {
    left = Mutex(count)
  }

  /// Whether the rendition that ends now is the last to do so.
  func isLast() -> Bool {
    left.withLock { left in
      left -= 1
      return left == 0
    }
  }
}
