internal import Synchronization

/// Takes telemetry from the threads that work, for the task that sends it: bounded, and never waiting.
///
/// What does not fit is dropped and counted.
final class BatchQueue<Element: Sendable>: Sendable {
  private struct State {
    var elements: [Element] = []
    var isFlushing = false
    var isClosed = false
  }

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

  var count: Int { state.withLock { $0.elements.count } }

  func offer(_ element: Element) {
    let (isTaken, isBatch) = state.withLock { state in
      guard state.elements.count < capacity, !state.isClosed else { return (false, false) }
      state.elements.append(element)
      return (true, state.elements.count % batchSize == 0)
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
  func take() -> [Element]? {
    state.withLock { state in
      let isDue = state.elements.count >= batchSize || state.isFlushing || state.isClosed
      guard isDue, !state.elements.isEmpty else {
        state.isFlushing = false
        return nil
      }
      let batch = Array(state.elements.prefix(batchSize))
      state.elements.removeFirst(batch.count)
      return batch
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
