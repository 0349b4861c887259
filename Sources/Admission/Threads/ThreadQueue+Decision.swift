internal import ImagePipeline
internal import WorkThreads

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
  /// An image whose message has not arrived is taken for one like its caller's latest. Images that others have been
  /// promised to be received then count as if they waited, because they will. Otherwise more messages would be received
  /// than can be processed, and refused afterwards.
  ///
  /// - `cost`: the cost of the image; `nil` before its message has arrived.
  /// - Returns: The lane that it has taken to begin now, or `nil` if it waits, in the place of another if all are taken.
  /// - Throws: `overloaded`.
  func decide(
    _ caller: ImageCaller, cost: ImageCost?, _ idle: Idle, _ state: inout State
  ) throws(PipelineError) -> (lane: Lane?, isFull: Bool) {
    let name = caller.connection
    let promised = cost == nil ? state.expected : [:]
    let duration = cost?.duration ?? promised[name]?.cost ?? .zero
    let count = state.waiting.count + state.grantedCount + promised.values.reduce(0) { $0 + $1.count }
    let isFull = count >= idle.places
    if let cost {
      if let lane = state.laneNow(cost, idle, isFull: isFull) { return (lane, isFull) }
    } else if state.waiting.count == 0 {
      return (nil, isFull)
    }
    if isFull, !state.isAhead(name, with: promised) { throw full(state, caller, duration) }
    let work = state.waiting.work(untilEndOf: duration, in: name, after: promised.mapValues(\.work))
    if let error = refusal(caller, wait: state.rate.time(for: work)) { throw error }
    return (nil, isFull)
  }

  private func refusal(_ caller: ImageCaller, wait: Duration) -> PipelineError? {
    if let maxWait, wait > maxWait {
      return PipelineError(
        .overloaded,
        "the images that wait for a thread will take about \(wait.roundedSeconds) s, above max_queue_seconds of "
          + "\(maxWait.roundedSeconds); try again later",
        retryDelay: wait - maxWait)
    }
    guard let deadline = caller.deadline, wait > ContinuousClock.now.duration(to: deadline) * Self.usableShare else {
      return nil
    }
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
      .overloaded, "\(memory.maxWaiting) images are waiting for a thread or memory; try again later",
      retryDelay: state.rate.time(for: state.waiting.work(untilEndOf: cost, in: caller.connection)))
  }
}

extension ThreadQueue.State {
  /// Whether a caller with `count` waiting images may take the place of one of the caller with the most.
  ///
  /// Callers that wait with almost as many keep theirs: an image that loses its place was received for nothing.
  func isAhead(_ count: Int, of longest: Int) -> Bool { longest > count + max(1, count / 2) }

  /// Whether a caller may take the place of one of the caller with the most images, waiting and promised ones.
  fileprivate func isAhead(_ caller: String, with promised: [String: ThreadQueue.Expected]) -> Bool {
    func count(_ name: String) -> Int { waiting.count(of: name) + (promised[name]?.count ?? 0) }
    return isAhead(count(caller), of: promised.keys.map(count).reduce(waiting.longest?.count ?? 0, max))
  }

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
  fileprivate var roundedSeconds: Double { Double((self / .milliseconds(10)).rounded()) / 100 }
}
