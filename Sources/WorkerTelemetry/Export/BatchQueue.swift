internal import Synchronization

/// What a queue gathers, element by element, until it is sent as a whole.
protocol BatchContents {
  associatedtype Element

  /// An empty batch of which `capacity` elements are expected.
  init(capacity: Int)

  var count: Int { get }

  mutating func append(_ element: Element)
}

extension Array: BatchContents {
  init(capacity: Int) {
    self.init()
    reserveCapacity(capacity)
  }
}

/// Takes telemetry from the threads that work, for the task that sends it: bounded, and never waiting.
///
/// What does not fit is dropped and counted.
final class BatchQueue<Batch: BatchContents & Sendable>: Sendable where Batch.Element: Sendable {
  private struct State {
    /// In the order of their elements; all but the last are full.
    var batches: [Batch] = []
    var count = 0
    var isFlushing = false
    var isClosed = false
  }

  /// What is expected of a batch at most: one may be allowed to be larger than there is ever anything to put into it.
  private static var maxExpectedCount: Int { 512 }

  private let capacity: Int
  let batchSize: Int
  let counts: ExportCounts
  private let state = Mutex(State())
  private let wake = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
  private let closing = AsyncStream<Never>.makeStream()

  init(capacity: Int, batchSize: Int, counts: ExportCounts) {
    self.capacity = capacity
    self.batchSize = batchSize
    self.counts = counts
  }

  /// Yields whenever there may be a batch to take, and ends when the queue is closed; one consumer.
  var wakes: AsyncStream<Void> { wake.stream }

  /// Ends when the queue is closed; one consumer.
  var closes: AsyncStream<Never> { closing.stream }

  var count: Int { state.withLock { $0.count } }

  func offer(_ element: Batch.Element) {
    let (isTaken, isBatch) = state.withLock { state in
      guard state.count < capacity, !state.isClosed else { return (false, false) }
      if state.batches.last.map({ $0.count >= batchSize }) ?? true {
        state.batches.append(Batch(capacity: min(batchSize, Self.maxExpectedCount)))
      }
      let last = state.batches.count - 1
      state.batches[last].append(element)
      state.count += 1
      return (true, state.batches[last].count == batchSize)
    }
    if !isTaken { counts.drop(1, because: .queueFull) }
    if isBatch { wake.continuation.yield() }
  }

  /// Lets go of what is there now, in batches that need not be full.
  func flush() {
    state.withLock { $0.isFlushing = true }
    wake.continuation.yield()
  }

  /// Takes nothing more; what is there can still be taken.
  func close() {
    state.withLock { $0.isClosed = true }
    wake.continuation.finish()
    closing.continuation.finish()
  }

  /// The next batch: a full one, or what there is when flushing or closed.
  func take() -> Batch? {
    state.withLock { state in
      guard let first = state.batches.first?.count, first >= batchSize || state.isFlushing || state.isClosed else {
        state.isFlushing = false
        return nil
      }
      state.count -= first
      return state.batches.removeFirst()
    }
  }
}

/// What became of one signal's telemetry.
package final class ExportCounts: Sendable {
  /// Why telemetry was dropped.
  package enum Reason: String, Sendable, CaseIterable {
    /// It came faster than the collector took it.
    case queueFull = "queue_full"
    /// The collector did not take it within the time for one export, or refused it for good.
    case exportFailed = "export_failed"
    /// The collector took the batch, and refused this part of it.
    case rejected
    /// The time for the last flush was over.
    case shutdown
  }

  private struct State {
    var exported = 0
    var dropped: [Reason: Int] = [:]
  }

  private let state = Mutex(State())

  init() {}

  /// Spans, data points or log records that the collector took.
  package var exported: Int { state.withLock { $0.exported } }

  /// Those that were lost, by reason.
  package var dropped: [Reason: Int] { state.withLock { $0.dropped } }

  func export(_ count: Int) { state.withLock { $0.exported += count } }

  func drop(_ count: Int, because reason: Reason) {
    guard count > 0 else { return }
    state.withLock { $0.dropped[reason, default: 0] += count }
  }
}
