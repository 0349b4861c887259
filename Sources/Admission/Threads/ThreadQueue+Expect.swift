package import ImagePipeline
internal import Synchronization
package import WorkThreads

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

  /// Decides about the image of a call before its message is received; see `decide`.
  ///
  /// - Returns: A promise to enter; release it when the message has arrived.
  /// - Throws: `overloaded` if `enter` would refuse the image.
  package func expect(_ caller: ImageCaller) throws(PipelineError) -> Claim {
    let idle = Idle(self)
    try state.withLock { state throws(PipelineError) in
      _ = try decide(caller, cost: nil, idle, &state)
      state.expected[caller.connection, default: Expected()].count += 1
    }
    return Claim { [self] in release(caller.connection) }
  }

  private func release(_ connection: String) {
    state.withLock { state in
      state.expected[connection]?.count -= 1
      guard state.expected.count > state.waiting.count + 64 else { return }
      let waiting = state.waiting
      state.expected = state.expected.filter { $1.count > 0 || waiting.count(of: $0) > 0 }
    }
  }
}
