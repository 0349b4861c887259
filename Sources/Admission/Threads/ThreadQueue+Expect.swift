package import ImagePipeline
internal import Synchronization

extension ThreadQueue {
  /// The images of one caller's calls whose messages have not arrived.
  struct Expected {
    var count = 0
    /// The average cost of the caller's latest images; `nil` before the first.
    private(set) var cost: Duration?

    mutating func learn(_ cost: Duration) { self.cost = self.cost.map { $0 + (cost - $0) * 0.2 } ?? cost }

    /// The estimated time of all expected images.
    var work: Duration { (cost ?? .zero) * count }
  }

  /// Decides about the image of a call before its message is received, as if the image were like the caller's latest.
  ///
  /// Images that others have been promised to be received count as if they waited, because they will. Otherwise more
  /// messages would be received than can be processed, and refused afterwards.
  ///
  /// - Returns: A promise to enter; release it when the message has arrived.
  /// - Throws: `overloaded` if `enter` would refuse the image.
  package func expect(_ caller: ImageCaller) throws(PipelineError) -> ExpectedImage {
    let idle = Idle(self)
    let error: PipelineError? = state.withLock { state in
      let known = state.expected[caller.connection] ?? Expected()
      let cost = known.cost ?? .zero
      if state.waiting.count > 0 {
        if state.isFull(idle), !state.mayPromise(caller.connection) { return full(state, caller, cost) }
        let expected = state.expected.mapValues(\.work)
        let work = state.waiting.work(untilEndOf: cost, in: caller.connection, after: expected)
        if let error = refusal(caller, wait: state.rate.time(for: work)) { return error }
      }
      state.expected[caller.connection, default: known].count += 1
      return nil
    }
    if let error { throw error }
    return ExpectedImage(of: caller.connection, in: self)
  }

  fileprivate func release(_ connection: String) {
    state.withLock { state in
      state.expected[connection]?.count -= 1
      guard state.expected.count > state.waiting.count + 64 else { return }
      let waiting = state.waiting
      state.expected = state.expected.filter { $1.count > 0 || waiting.count(of: $0) > 0 }
    }
  }
}

extension ThreadQueue.State {
  /// Whether no place is left, if the images that are expected take theirs.
  fileprivate func isFull(_ idle: ThreadQueue.Idle) -> Bool {
    waiting.count + grantedCount + expected.values.reduce(0) { $0 + $1.count } >= idle.places
  }

  /// Whether a caller may be promised one of the places of the caller with the most.
  fileprivate func mayPromise(_ caller: String) -> Bool {
    let longest = expected.map { waiting.count(of: $0) + $1.count }.max() ?? 0
    return isAhead(
      waiting.count(of: caller) + (expected[caller]?.count ?? 0), of: max(longest, waiting.longest?.count ?? 0))
  }
}

/// An image whose message has not arrived; the expectation ends when the object is destroyed.
package final class ExpectedImage: Sendable {
  private let connection: String
  private let queue: ThreadQueue

  fileprivate init(of connection: String, in queue: ThreadQueue) {
    self.connection = connection
    self.queue = queue
  }

  deinit { queue.release(connection) }
}
