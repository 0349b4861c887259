internal import ImagePipeline
internal import Synchronization

extension ThreadQueue {
  /// The images of one caller's calls whose messages have not arrived.
  struct Expected {
    var count = 0
    /// The average cost of the caller's latest images; `nil` before the first.
    private(set) var cost: Duration?

    mutating func learn(_ cost: Duration) { self.cost = self.cost.map { $0 + (cost - $0) * 0.2 } ?? cost }
  }

  /// Decides about the image of a call before its message is received, as if the image were like the caller's latest.
  ///
  /// - Returns: A promise to enter; release it when the message has arrived.
  /// - Throws: `overloaded` if `enter` would refuse the image.
  func expect(_ caller: ImageCaller) throws(PipelineError) -> ExpectedImage {
    let idle = Idle(self)
    let error: PipelineError? = state.withLock { state in
      let known = state.expected[caller.connection] ?? Expected()
      let cost = known.cost ?? .zero
      if state.waiting.count > 0 {
        let ownCount = state.waiting.count(of: caller.connection) + known.count
        if state.waiting.count + state.grantedCount + known.count >= idle.places, !state.isAhead(ownCount) {
          return full(state, caller, cost)
        }
        let work = state.waiting.work(untilEndOf: cost, in: caller.connection, after: cost * known.count)
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
