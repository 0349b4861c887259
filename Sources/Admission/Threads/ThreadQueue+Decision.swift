package import ImagePipeline
internal import Synchronization
package import WorkThreads

extension ThreadQueue {
  /// The threads without work, and the number of images that may wait.
  struct Idle {
    let mainCount: Int
    let hasExpress: Bool
    let places: Int

    init(_ queue: ThreadQueue) {
      mainCount = queue.main.idleThreadCount
      hasExpress = queue.express.idleThreadCount > 0
      // An image for which a thread is idle only waits for that thread to wake up.
      places = queue.memory.maxWaiting - queue.memory.waitingCount + mainCount
    }
  }

  /// Decides about an image from what is known of it: `enter` knows the cost of the image, `expect` only its caller.
  ///
  /// `enter` breaks a promise of `expect` only if the deadline itself would pass.
  ///
  /// An image whose message has not arrived is taken for one like its caller's latest. Images that others have been
  /// promised to be received then count as if they waited, because they will. Otherwise more messages would be received
  /// than can be processed, and refused afterwards.
  ///
  /// - `cost`: the cost of the image; `nil` before its message has arrived.
  /// - Returns: The lane that it has taken to begin now, or `nil` if it waits.
  /// - Throws: `overloaded`.
  func decide(
    _ caller: ImageCaller, cost: ImageCost?, _ idle: Idle, _ state: inout State
  ) throws(PipelineError) -> Lane? {
    let name = caller.connection
    let promised = cost == nil ? state.expected : [:]
    let duration = cost?.duration ?? promised[name]?.cost ?? .zero
    let count = state.waiting.count + state.grantedCount + promised.values.reduce(0) { $0 + $1.count }
    let free = idle.places - count
    if let cost {
      if let lane = state.laneNow(cost, idle, isFull: free <= 0) { return lane }
    }
    let own = state.waiting.count(of: name) + (promised[name]?.count ?? 0)
    guard hasPlace(caller, own, free, idle) else { throw full(state, caller, duration) }
    if cost == nil, state.waiting.count == 0 { return nil }
    let work = state.waiting.work(untilEndOf: duration, in: name, after: promised.mapValues(\.work))
    if let error = refusal(caller, wait: state.rate.time(for: work)) { throw error }
    return nil
  }

  /// Whether a caller with `own` images may add one while `free` places are left.
  ///
  /// A caller may have three times as many as are left to others, so that one flood takes three quarters and two take
  /// three sevenths each; nobody loses a place to another. Source: A. Choudhury, E. Hahne: Dynamic Queue Length
  /// Thresholds for Shared-Memory Packet Switches, IEEE/ACM Transactions on Networking 6 (1998).
  private func hasPlace(_ caller: ImageCaller, _ own: Int, _ free: Int, _ idle: Idle) -> Bool {
    // A promise ends when its client has sent nothing for a while, so that there may be more images than places.
    caller.isPromised ? free > -idle.places : own < 3 * free
  }

  private func refusal(_ caller: ImageCaller, wait: Duration) -> PipelineError? {
    if let maxWait, wait > maxWait, !caller.isPromised {
      return PipelineError(
        .overloaded,
        "the images that wait for a thread will take about \(wait.roundedSeconds) s, above max_queue_seconds of "
          + "\(maxWait.roundedSeconds); try again later",
        retryDelay: wait - maxWait)
    }
    let share = caller.isPromised ? 1 : Self.usableShare
    guard let deadline = caller.deadline, wait > ContinuousClock.now.duration(to: deadline) * share else { return nil }
    return tooLate(wait: wait, deadline: deadline)
  }

  func tooLate(wait: Duration, deadline: ContinuousClock.Instant?) -> PipelineError {
    let left = deadline.map { ContinuousClock.now.duration(to: $0) } ?? .zero
    return PipelineError(
      .overloaded,
      "the image would be done in about \(wait.roundedSeconds) s, and its deadline is in \(left.roundedSeconds) s; "
        + "set a longer one or try again later",
      retryDelay: wait)
  }

  func full(_ state: State, _ caller: ImageCaller, _ cost: Duration) -> PipelineError {
    PipelineError(
      .overloaded, "\(memory.maxWaiting) images are already waiting for a thread or memory; try again later",
      retryDelay: state.rate.time(for: state.waiting.work(untilEndOf: cost, in: caller.connection)))
  }
}

extension ThreadQueue.State {
  /// Takes the place of an image that may begin without a wait; returns `nil` if it must wait.
  fileprivate mutating func laneNow(
    _ cost: ImageCost, _ idle: ThreadQueue.Idle, isFull: Bool
  ) -> ThreadQueue.Lane? {
    let isNext = !isFull && waiting.count == 0
    if cost.isSmall, idle.hasExpress, !isExpressGranted, !isNext || grantedCount >= idle.mainCount {
      isExpressGranted = true
      return .express
    }
    guard isNext, grantedCount < max(1, idle.mainCount) else { return nil }
    grantedCount += 1
    return .main
  }
}

extension Duration {
  /// Seconds with two digits after the decimal point.
  var roundedSeconds: Double { Double((self / .milliseconds(10)).rounded()) / 100 }
}

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
