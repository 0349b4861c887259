internal import Admission
internal import AsyncAlgorithms
internal import FoundationEssentials
internal import ImagePipeline
internal import Synchronization
internal import Tracing

/// One `BatchProcess` call.
///
/// Splits the stream into items, processes them concurrently, and ends each with exactly one final report or error. An
/// error of one item never affects another.
struct BatchStream: Sendable {
  private let environment: WorkerEnvironment
  private let responses: BatchResponses
  private let cancellation: Cancellation
  private let connection: String
  private let items: ItemTable
  private let arrivals = Arrivals()
  /// The deadline of uploads; its clock runs while the stream waits for its client.
  private let progress: ProgressDeadline

  /// Creates the handler of one call.
  ///
  /// - `connection`: the peer, whose streams share one limit of memory for uploads.
  init(environment: WorkerEnvironment, responses: BatchResponses, cancellation: Cancellation, connection: String) {
    self.environment = environment
    self.responses = responses
    self.cancellation = cancellation
    self.connection = connection
    progress = ProgressDeadline(
      limit: environment.limits.uploadTimeout, minBytesPerSecond: environment.limits.minBytesPerSecond)
    items = ItemTable(
      maxOpenUploads: environment.limits.maxOpenUploads, maxWholeImages: environment.limits.maxImagesPerStream)
  }

  /// Serves the stream until the client has sent everything and every item has ended, or until a drain finds the stream
  /// idle.
  func run<Parts: AsyncSequence & Sendable>(_ parts: Parts) async throws where Parts.Element == BatchPart {
    let isDrained = try await withThrowingTaskGroup(of: Bool.self) { watchers in
      watchers.addTask {
        try await serveItems(parts)
        return false
      }
      watchers.addTask { await drainedWhileIdle() }
      if progress.limit != nil {
        watchers.addTask {
          await progress.watch { items.stopUpload($0) }
          return false
        }
      }
      defer { watchers.cancelAll() }
      return try await watchers.next() ?? false
    }
    if isDrained { throw DrainError() }
  }

  /// Waits until the worker drains and the stream has no unfinished items.
  /// - Returns: `false` if cancelled before.
  private func drainedWhileIdle() async -> Bool {
    let handler = environment.drain.start.addHandler { items.noteChange() }
    // After the drain's timeout the work is cancelled; uploads that receive no more bytes must end, too.
    let stop = cancellation.addHandler { items.finishUploads() }
    defer {
      environment.drain.start.removeHandler(handler)
      cancellation.removeHandler(stop)
    }
    for await _ in items.itemEnds where environment.drain.isDraining && items.isEmpty {
      // Items that were on their way are refused by name, so that a client that stops sending at the first such error
      // learns of every item that was not taken.
      let quietTime = environment.limits.drainQuietTime
      await arrivals.pause(of: quietTime, limit: quietTime * 10)
      if items.isEmpty { return true }
    }
    return false
  }

  private func serveItems<Parts: AsyncSequence>(_ parts: Parts) async throws where Parts.Element == BatchPart {
    try await withThrowingDiscardingTaskGroup { group in
      do {
        progress.resume()
        for try await part in parts {
          // While the stream waits for its own items, the client is not the slow side.
          progress.pause()
          arrivals.note()
          defer { progress.resume() }
          if let item = try await accept(part) { group.addTask { try await process(item) } }
        }
      } catch {
        // The client is gone, so its items are no longer needed.
        cancellation.cancel()
        items.finishUploads()
        throw error
      }
      items.finishUploads()
    }
  }

  // MARK: Parts

  /// Processes one part of the stream.
  /// - Returns: The item that the part starts, to be processed; `nil` if it starts none.
  private func accept(_ part: BatchPart) async throws -> BatchItem? {
    let id = part.itemID
    guard (1...BatchItem.maxIDByteCount).contains(id.utf8.count) else {
      try await refuse(badID: id)
      return nil
    }
    switch (part.content, items.standing(of: id)) {
    case (.start(let start), .unknown): return try await begin(id, start)
    case (.start, .uploading(let item)):
      try await end(item, with: .invalid("item_id is used by an open upload; use another one"))
    case (.start, .stopping), (.start, .working), (.start, .ended):
      try await emit(PipelineError.invalid("item_id was used before on this stream; use another one"), for: id)
    case (.chunk(let bytes), .uploading(let item)): try await take(bytes, of: item)
    case (.end, .uploading(let item)):
      progress.supply(id, byteCount: 0)
      items.complete(item)
    case (nil, .uploading(let item)): try await end(item, with: .unsetPart)
    case (.chunk, .unknown), (.end, .unknown):
      try await refuse(id, with: PipelineError.invalid("item_id matches no started item; send its start first"))
    case (nil, .unknown): try await refuse(id, with: PipelineError.unsetPart)
    case (_, .stopping), (.chunk, _), (.end, _), (nil, _): break  // it has ended, or all its bytes have arrived
    }
    return nil
  }

  private func begin(_ id: String, _ start: BatchStart) async throws -> BatchItem? {
    let item: BatchItem
    do { item = try makeItem(id, start) } catch {
      try await refuse(id, with: error)
      return nil
    }
    if !item.isWhole { progress.observe(id) }
    let asked = ContinuousClock.now
    if await items.begin(item) { environment.metrics.waited(.item, asked.duration(to: .now)) }
    return item
  }

  /// Creates the item of a start message.
  /// - Throws: The reason why the item cannot be started.
  private func makeItem(_ id: String, _ start: BatchStart) throws -> BatchItem {
    if environment.drain.isDraining { throw DrainError() }
    try environment.limits.check(messageByteCount: start.image.count)
    try BatchItem.check(key: start.previewKey)
    let renditions = try start.renditions.get()
    guard !start.image.isEmpty || items.hasRoomForUpload(replacing: start.previewKey) else {
      throw PipelineError(
        .overloaded,
        "\(environment.limits.maxOpenUploads) uploads are open on this stream, which is the maximum; finish one first")
    }
    return BatchItem(
      id: id, key: start.previewKey, renditions: renditions,
      content: start.image.isEmpty ? .upload(AsyncChannel()) : .whole(start.image), stream: cancellation)
  }

  private func take(_ bytes: Data, of item: BatchItem) async throws {
    do throws(PipelineError) { try environment.limits.check(messageByteCount: bytes.count) } catch {
      return try await end(item, with: error)
    }
    // An empty chunk is no progress: a client that sends only those has stalled.
    guard case .upload(let chunks) = item.content, !bytes.isEmpty else { return }
    progress.supply(item.id, byteCount: bytes.count)
    await chunks.send(bytes)
  }

  // MARK: Items

  /// Processes one item and sends its report or error.
  private func process(_ item: BatchItem) async throws {
    defer {
      items.remove(item)
      progress.forget(item.id)
    }
    let span = environment.tracer.startSpan("item", ofKind: .internal)
    defer { span.end() }
    span.attributes["imageworker.item_id"] = item.id
    do {
      try await ServiceContext.$current.withValue(span.context) { try await job(of: item).run() }
    } catch {
      let error = environment.drain.reason(items.reason(error, of: item))
      span.record(error)
      if items.claimEnd(of: item) { try await emit(error, for: item.id) }
    }
  }

  private func job(of item: BatchItem) -> PreviewedJob {
    let (memory, sink) = (environment.memory, ItemSink(responses.sink(of: item.id), item: item, table: items))
    // The deadline is that of the stream, not of its items.
    let caller = environment.imageCaller(peer: connection)
    switch item.content {
    case .whole(let image):
      return PreviewedJob(
        item.renditions, from: WholeImage(image, isCharged: memory.receivesMessages), to: sink,
        admission: ItemAdmission(item: item, table: items, memory: memory), environment: environment,
        cancellation: item.cancellation, caller: caller)
    case .upload(let chunks):
      return PreviewedJob(
        item.renditions,
        from: UploadSource(
          item, chunks: chunks, table: items, progress: progress, memory: memory, waited: environment.metrics.waited),
        to: sink,
        admission: UploadAdmission(
          item: item, table: items, memory: memory, shares: environment.shares, connection: connection),
        environment: environment, cancellation: item.cancellation, caller: caller)
    }
  }

  // MARK: Ends

  /// Ends an upload with an error before its image has ended.
  ///
  /// The task that processes it notices when it needs the next bytes.
  private func end(_ item: BatchItem, with error: PipelineError) async throws {
    guard items.claimEnd(of: item) else { return }
    try await emit(error, for: item.id)
    item.finishChunks()
  }

  /// Sends the error of an id for which no item was created.
  private func refuse(_ id: String, with error: any Error) async throws {
    try await emit(error, for: id)
    items.refuse(id)
  }

  private func refuse(badID id: String) async throws {
    let message = "item_id has \(id.utf8.count) bytes; it must have between 1 and \(BatchItem.maxIDByteCount)"
    // The ellipsis marks the id as cut, so that it cannot equal another item's id.
    let name = id.isEmpty ? "" : String(decoding: id.utf8.prefix(64), as: UTF8.self) + "…"
    try await emit(PipelineError.invalid(message), for: name)
  }

  private func emit(_ error: any Error, for id: String) async throws {
    environment.metrics.failed(error, isCancelled: cancellation.isCancelled)
    try await responses.write(error, of: id)
  }
}

extension PipelineError {
  fileprivate static let unsetPart = PipelineError(
    .invalidField, "part is not set; set start, chunk or end", field: "part", of: .message)

  /// An error for an item id that is not valid in its context.
  fileprivate static func invalid(_ message: String) -> PipelineError {
    PipelineError(.invalidField, message, field: "item_id", of: .message)
  }
}

/// Knows when the last part of a stream arrived.
private final class Arrivals: Sendable {
  private let last = Mutex(ContinuousClock.now)

  /// Records that a part has arrived.
  func note() { last.withLock { $0 = .now } }

  /// Waits until nothing has arrived for a time.
  ///
  /// - Parameters:
  ///   - quietTime: The time without parts.
  ///   - limit: The maximum time to wait.
  func pause(of quietTime: Duration, limit: Duration) async {
    let end = ContinuousClock.now + limit
    note()
    while true {
      let next = min(last.withLock { $0 } + quietTime, end)
      guard next > .now, (try? await Task.sleep(until: next, clock: .continuous)) != nil else { return }
    }
  }
}
