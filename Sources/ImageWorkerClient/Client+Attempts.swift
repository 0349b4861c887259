internal import FoundationEssentials
internal import GRPCCore
internal import Synchronization
internal import WorkerProtocol

extension Client {
  /// Passes on the parts of the result, of the first attempt that gives any.
  func parts(
    of upload: Upload, _ request: ImageRequest, _ timeout: Duration?,
    _ receive: @escaping @Sendable (ResponsePart) async throws -> Void
  ) async throws {
    var retries = Retries(workers, timeout: timeout)
    let isBegun = Mutex(false)
    var isDone = false
    while !isDone {
      isDone = try await workers.use { worker in
        do {
          let timeout = try retries.left()
          try await StallWatch.run(limit: workers.retry.stallAfter) { [self] watch in
            try await attempt(worker, upload, request, timeout: timeout, watch) { part in
              isBegun.withLock { $0 = true }
              try await receive(part)
            }
          }
          workers.succeed(worker)
          return true
        } catch let error as SourceError {
          throw error.error
        } catch {
          if isBegun.withLock({ $0 }) || !upload.canStart { throw ImageWorkerError(error, of: worker) ?? error }
          try await retries.wait(after: error, of: worker)
          return false
        }
      }
    }
  }

  private func attempt(
    _ worker: Worker, _ upload: Upload, _ request: ImageRequest, timeout: Duration?,
    _ watch: StallWatch, _ receive: @escaping @Sendable (ResponsePart) async throws -> Void
  ) async throws {
    let reader = try upload.open()
    let head = try await reader.readExactly(Upload.wholeByteCount + 1)
    let options = Workers.options(timeout: timeout)
    let metadata = try await workers.metadata()
    let intake = Intake(request, maxByteCount: workers.maxResultBytes)
    watch.start()
    if head.count <= Upload.wholeByteCount {
      var message = request.message
      message.image = head
      try await worker.stub.processImage(message, metadata: metadata, options: options) { response in
        var intake = intake
        for try await message in response.messages {
          try await self.pass(ResponsePart(message), &intake, watch, to: receive)
        }
      }
      return
    }
    let sending = Sending(reader)
    do {
      try await worker.stub.batchProcess(
        metadata: metadata, options: options,
        requestProducer: { try await sending.send(request.start, head: head, to: $0, watch) },
        onResponse: { response in
          var intake = intake
          for try await message in response.messages {
            let part = ResponsePart(message)
            // As the status of a call would be: it may be retried.
            if case .error(let error) = part.content, part.key.renditionID.isEmpty { throw error }
            try await self.pass(part, &intake, watch, to: receive)
          }
        })
    } catch { throw sending.error ?? error }
    if let error = sending.error { throw error }
  }

  /// Passes on a part that belongs to a result; the time that its receiver takes is not the worker's.
  private func pass(
    _ part: ResponsePart, _ intake: inout Intake, _ watch: StallWatch,
    to receive: @Sendable (ResponsePart) async throws -> Void
  ) async throws {
    guard try intake.admits(part) else { return }
    watch.stop()
    try await receive(part)
    watch.start()
  }
}

/// The upload of one image in chunks.
private final class Sending: @unchecked Sendable {
  // Used by one task at a time: first the one that creates it, then the producer of the call.
  private let reader: Reader
  private let failure = Mutex<SourceError?>(nil)

  init(_ reader: Reader) { self.reader = reader }

  /// The error of reading the image.
  var error: SourceError? { failure.withLock { $0 } }

  func send(
    _ start: Imageworker_V1_BatchItemStart, head: Data, to writer: RPCWriter<Imageworker_V1_BatchProcessRequest>,
    _ watch: StallWatch
  ) async throws {
    try await writer.write(.item("1", .start(start)))
    for chunk in head.chunks(of: Upload.chunkByteCount) { try await writer.write(.item("1", .chunk(chunk))) }
    do {
      while case let chunk = try await reader.read(Upload.chunkByteCount), !chunk.isEmpty {
        try await writer.write(.item("1", .chunk(chunk)))
        watch.note()
      }
    } catch let error as SourceError {
      failure.withLock { $0 = error }
      throw error
    }
    try await writer.write(.item("1", .end(Imageworker_V1_BatchItemEnd())))
  }
}

extension Imageworker_V1_BatchProcessRequest {
  static func item(_ id: String, _ part: OneOf_Part) -> Imageworker_V1_BatchProcessRequest {
    var request = Imageworker_V1_BatchProcessRequest()
    request.itemID = id
    request.part = part
    return request
  }
}

extension Data {
  /// The bytes in parts of at most `count`.
  func chunks(of count: Int) -> [Data] {
    stride(from: 0, to: self.count, by: count).map { dropFirst($0).prefix(count) }
  }
}

/// The attempts of one call.
struct Retries {
  private let workers: Workers
  private let timeout: Duration?
  private let deadline: ContinuousClock.Instant?
  private var failures = 0

  init(_ workers: Workers, timeout: Duration?) {
    self.workers = workers
    self.timeout = timeout
    deadline = timeout.map { .now + $0 }
  }

  /// The time until the deadline.
  func left() throws -> Duration? {
    guard let deadline, let timeout else { return nil }
    let left = ContinuousClock.now.duration(to: deadline)
    if left <= .zero { throw ImageWorkerError.timedOut(after: timeout) }
    return left
  }

  /// Waits before the next attempt.
  /// - Returns: the error that is overcome.
  /// - Throws: the error if there is no further attempt.
  @discardableResult
  mutating func wait(after error: any Error, of worker: Worker) async throws -> ImageWorkerError {
    try Task.checkCancellation()
    guard let known = ImageWorkerError(error, of: worker) else { throw error }
    failures += 1
    if !known.isRetryable || failures >= workers.retry.attempts { throw known }
    workers.fail(worker, known)
    // Another address may be tried at once, but when that fails too, the success of other calls says nothing about this one.
    let ownDelay = failures > 1 ? workers.retry.delay(afterFailures: failures - 1) : .zero
    let delay = max(workers.delay(), ownDelay)
    if let deadline, .now + delay > deadline { throw known }
    try await Task.sleep(for: delay)
    return known
  }
}
