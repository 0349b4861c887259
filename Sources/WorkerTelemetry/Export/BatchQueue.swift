internal import Synchronization

/// A container that a queue fills element by element until it is sent as a whole.
protocol BatchContents {
  associatedtype Element

  /// Creates an empty batch that expects `capacity` elements.
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

/// A bounded queue from the threads that record telemetry to the task that sends it; recording never waits.
///
/// Elements that do not fit are dropped and counted.
final class BatchQueue<Batch: BatchContents & Sendable>: Sendable where Batch.Element: Sendable {
  private struct State {
    /// Batches in the order of their elements; all but the last are full.
    var batches: [Batch] = []
    var count = 0
    var isFlushing = false
    var isClosed = false
  }

  /// Maximum capacity reserved for a batch, because the configured batch size may be far above what is ever recorded.
  private static var maxExpectedCount: Int { 512 }

  private let capacity: Int
  let batchSize: Int
  let counts: ExportCounts
  private let state = Mutex(State())
  /// Yields whenever a batch may be available, and ends when the queue is closed; it supports one consumer.
  let wake = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
  /// Ends when the queue is closed; it supports one consumer.
  let closing = AsyncStream<Never>.makeStream()

  init(capacity: Int, batchSize: Int, counts: ExportCounts) {
    self.capacity = capacity
    self.batchSize = batchSize
    self.counts = counts
  }

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

  /// Makes the current contents available, in batches that may be incomplete.
  func flush() {
    state.withLock { $0.isFlushing = true }
    wake.continuation.yield()
  }

  /// Stops accepting elements; the current contents can still be taken.
  func close() {
    state.withLock { $0.isClosed = true }
    wake.continuation.finish()
    closing.continuation.finish()
  }

  /// Returns the next batch: a full one, or an incomplete one while flushing or closed; `nil` if there is none.
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

/// Counts of exported and dropped telemetry for one signal.
package final class ExportCounts: Sendable {
  /// The reason why telemetry was dropped.
  package enum Reason: String, Sendable, CaseIterable {
    /// It was recorded faster than the collector accepted it.
    case queueFull = "queue_full"
    /// The collector did not accept it within the export timeout, or refused it permanently.
    case exportFailed = "export_failed"
    /// The collector accepted the batch, but rejected this part of it.
    case rejected
    /// The time limit for the last flush had passed.
    case shutdown
  }

  private struct State {
    var exported = 0
    var dropped: [Reason: Int] = [:]
  }

  private let state = Mutex(State())

  init() {}

  /// Number of spans, data points or log records that the collector accepted.
  package var exported: Int { state.withLock { $0.exported } }

  /// Number of spans, data points or log records that were dropped, by reason.
  package var dropped: [Reason: Int] { state.withLock { $0.dropped } }

  func export(_ count: Int) { state.withLock { $0.exported += count } }

  func drop(_ count: Int, because reason: Reason) {
    guard count > 0 else { return }
    state.withLock { $0.dropped[reason, default: 0] += count }
  }
}
