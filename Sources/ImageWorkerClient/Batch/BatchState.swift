internal import Synchronization

/// The items of a batch and where they are.
///
/// Each item is in one place at a time: waiting, in flight on a lane, or done. A speculative copy is in flight on two.
final class BatchState: Sendable {
  struct Contents {
    var entries: [Int: BatchEntry] = [:]
    /// The numbers of the entries that wait, in the order in which they are sent.
    var waiting: [Int] = []
    var ends: [BatchEnd] = []
    /// Items that were taken from the source and whose results are not consumed.
    var openCount = 0
    var isExhausted = false
    var isStopped = false
    var failure: (any Error)?
    /// The error of the sequence of items, which follows the results of those before it.
    var itemsFailure: (any Error)?
    /// The average time from sending an item to its end.
    var itemTime: Duration?
    var lanes: [BatchLaneState]
    var activeLaneCount: Int
    /// The maximum size of a result.
    let maxResultBytes: Int
  }

  let options: BatchOptions
  let retry: RetryPolicy
  let changed = Signal()
  let contents: Mutex<Contents>

  init(options: BatchOptions, laneCount: Int, retry: RetryPolicy, maxResultBytes: Int) {
    self.options = options
    self.retry = retry
    contents = Mutex(
      Contents(
        lanes: (0..<laneCount).map { _ in BatchLaneState() }, activeLaneCount: laneCount,
        maxResultBytes: maxResultBytes))
  }

  /// Changes the contents and wakes all that wait for that.
  func update<Value: Sendable>(_ body: (inout Contents) -> Value) -> Value {
    let value = contents.withLock { body(&$0) }
    changed.notify()
    return value
  }

  /// Waits until `body` returns a value.
  /// - Returns: `nil` when the task is cancelled.
  func wait<Value: Sendable>(_ body: (inout Contents) -> Value?) async -> Value? {
    while !Task.isCancelled {
      let generation = changed.generation
      if let value = contents.withLock({ body(&$0) }) { return value }
      await changed.wait(after: generation)
    }
    return nil
  }

  /// Whether no item is left, or none is to be sent any more.
  var isDone: Bool { contents.withLock { $0.isDone } }

  // The source of the items

  /// Waits until a further item may be taken.
  /// - Returns: whether there may be one.
  func waitForRoom() async -> Bool {
    let limit = contents.withLock { $0.lanes.count } * options.window
    return await wait { contents in
      if contents.isStopped || contents.failure != nil { return false }
      guard contents.openCount < limit else { return nil }
      contents.openCount += 1
      return true
    } ?? false
  }

  func add(_ number: Int, _ upload: Upload, _ request: ImageRequest) {
    update { contents in
      contents.entries[number] = BatchEntry(number: number, upload: upload, request: request, notBefore: .now)
      contents.waiting.append(number)
    }
  }

  /// Ends an item that cannot be sent.
  func addFailure(_ number: Int, _ error: any Error) {
    update { contents in
      contents.ends.append(
        BatchEnd(number: number, outcomes: .failure(error), preview: nil, attempts: 0, worker: ""))
    }
  }

  /// There are no further items.
  /// - `error`: that of their sequence.
  func exhaust(_ error: (any Error)? = nil) {
    update { contents in
      contents.isExhausted = true
      contents.itemsFailure = error
      // The room for an item that did not come.
      contents.openCount -= 1
    }
  }

  // The consumer of the results

  /// The next result; `nil` after the last one.
  /// - Throws: the error that ended the batch, or `CancellationError`.
  func next() async throws -> BatchEnd? {
    let end: Result<BatchEnd?, any Error>? = await wait { contents in
      if !contents.ends.isEmpty { return .success(contents.ends.removeFirst()) }
      if let failure = contents.failure { return .failure(failure) }
      return contents.isDone ? contents.itemsFailure.map { .failure($0) } ?? .success(nil) : nil
    }
    guard let end else { throw CancellationError() }
    return try end.get()
  }

  func fail(_ error: any Error) { update { $0.failure = $0.failure ?? error } }
}

extension BatchState.Contents {
  var isDone: Bool { isStopped || failure != nil || (isExhausted && entries.isEmpty) }

  /// Ends an item, wherever it is.
  mutating func finish(
    _ number: Int, _ outcomes: Result<Outcomes, any Error>, preview: ImageResult? = nil, worker: String = ""
  ) {
    guard let entry = entries.removeValue(forKey: number) else { return }
    waiting.removeAll { $0 == number }
    ends.append(
      BatchEnd(number: number, outcomes: outcomes, preview: preview, attempts: entry.attempts, worker: worker))
  }

  /// Sends an item again after an error of the copy on a lane, unless that is pointless.
  mutating func retry(
    _ number: Int, lane: Int, _ error: ImageWorkerError, isBreak: Bool, _ policy: RetryPolicy, worker: String
  ) {
    guard var entry = entries[number] else { return }
    entry.flights.removeAll { $0.lane == lane }
    var delay = Duration.zero
    if isBreak {
      entry.breaks += 1
      delay = policy.delay(afterFailures: entry.breaks)
    } else {
      // Another worker may have room, or not shut down, at once.
      delay = max(error.retryDelay, error.isOverload ? policy.delay(afterFailures: entry.refusals + 1) : .zero)
      entry.refusals += 1
    }
    entry.notBefore = .now + delay
    entries[number] = entry
    let isSpent = entry.breaks >= policy.attempts || entry.refusals >= policy.overloadAttempts
    if !error.isRetryable || isSpent || !entry.upload.canStart {
      finish(number, .failure(error), worker: worker)
    } else if entry.flights.isEmpty {
      waiting.append(number)
    }
  }
}
