internal import ImagePipeline
internal import Synchronization
internal import WorkThreads

/// The client that an image is processed for.
struct ImageCaller: Sendable {
  /// The caller or connection, which shares the image threads equally with others.
  var connection = ""
  /// The time at which the client stops waiting; `nil` if it did not say.
  var deadline: ContinuousClock.Instant?
}

/// Decides which of the waiting images an image thread begins next.
///
/// Callers, or connections without one, get equal shares of the time; images of the same one are begun in order of
/// arrival. An image is refused at once if the images before it will take longer than its client waits, or than the
/// queue may last, because work on it would be wasted. Images that have begun are not affected: their threads continue
/// with them first.
package final class ThreadQueue: Sendable {
  /// The outcome of the wait.
  private enum Outcome: Sendable { case begin, cancelled, late }

  private struct Waiter {
    let deadline: ContinuousClock.Instant?
    let cost: Duration
    let continuation: CheckedContinuation<Outcome, Never>
  }

  private struct State {
    var waiting = FairQueue<Waiter>()
    /// The number of images that may begin and have not reached a thread yet.
    var grantedCount = 0
    var rate: WorkRate
  }

  /// The part of the time until a deadline that waiting images may take; the rest is for errors of the estimate.
  private static let usableShare = 0.8

  private let executor: ImageExecutor
  private let memory: MemoryBudget
  /// The maximum estimated wait; `nil` for no limit.
  private let maxWait: Duration?
  private let state: Mutex<State>
  /// The estimates of the images' costs.
  let costs = CostModel()

  init(executor: ImageExecutor, memory: MemoryBudget, maxWait: Duration?) {
    self.executor = executor
    self.memory = memory
    self.maxWait = maxWait
    state = Mutex(State(rate: WorkRate(threadCount: executor.threadCount)))
  }

  /// The number of images that wait for a thread.
  package var waitingCount: Int { state.withLock { $0.waiting.count + $0.grantedCount } }

  /// Waits until a thread may begin with an image; call `begin` when it does.
  ///
  /// - Parameters:
  ///   - caller: The client that the image belongs to.
  ///   - cost: The estimated time that the image takes.
  ///   - cancellation: Ends the wait when it is cancelled.
  /// - Throws: `overloaded` if too many images wait, or if the wait would be too long; `cancelled`.
  func enter(_ caller: ImageCaller, cost: Duration, cancellation: Cancellation) async throws(PipelineError) {
    try cancellation.check()
    let idleCount = executor.idleThreadCount
    // An image for which a thread is idle only waits for that thread to wake up.
    let places = memory.maxWaiting - memory.waitingCount + idleCount
    let decision: Result<Bool, PipelineError> = state.withLock { state in
      guard state.waiting.count + state.grantedCount < places else { return .failure(full) }
      if state.waiting.count == 0, state.grantedCount < max(1, idleCount) {
        state.grantedCount += 1
        return .success(true)
      }
      let wait = state.rate.time(for: state.waiting.work(untilEndOf: cost, in: caller.connection))
      if let error = refusal(caller, wait: wait) { return .failure(error) }
      return .success(false)
    }
    guard try !decision.get() else { return }
    switch await wait(caller, cost: cost, cancellation) {
    case .begin: return
    case .cancelled: throw .cancelled
    case .late: throw tooLate(wait: cost, deadline: caller.deadline)
    }
  }

  /// Records that a thread has begun with an image, and lets the next one begin.
  func begin() {
    let now = ContinuousClock.now
    let idleCount = executor.idleThreadCount
    let waiters: [(Waiter, Outcome)] = state.withLock { state in
      state.grantedCount -= 1
      var ended: [(Waiter, Outcome)] = []
      while state.grantedCount < max(1, idleCount), let waiter = state.waiting.popFirst() {
        let isLate = waiter.deadline.map { now + waiter.cost > $0 } ?? false
        ended.append((waiter, isLate ? .late : .begin))
        guard !isLate else { continue }
        state.grantedCount += 1
        state.rate.begin(waiter.cost)
      }
      state.rate.measure(now, isBacklogged: state.waiting.count > 0)
      return ended
    }
    for (waiter, outcome) in waiters { waiter.continuation.resume(returning: outcome) }
  }

  private func wait(_ caller: ImageCaller, cost: Duration, _ cancellation: Cancellation) async -> Outcome {
    let handler = Mutex<UInt64?>(nil)
    let outcome: Outcome = await withCheckedContinuation { continuation in
      let waiter = Waiter(deadline: caller.deadline, cost: cost, continuation: continuation)
      let id: UInt64? = state.withLock { state in
        // The image before this one may have begun since the decision to wait.
        if state.grantedCount == 0 {
          state.grantedCount += 1
          return nil
        }
        return state.waiting.append(waiter, to: caller.connection, cost: cost)
      }
      guard let id else { return continuation.resume(returning: .begin) }
      let registered = cancellation.addHandler { [self] in
        let waiter = state.withLock { $0.waiting.remove(id, from: caller.connection) }
        waiter?.continuation.resume(returning: .cancelled)
      }
      handler.withLock { $0 = registered }
    }
    if let registered = handler.withLock({ $0 }) { cancellation.removeHandler(registered) }
    return outcome
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

  private func tooLate(wait: Duration, deadline: ContinuousClock.Instant?) -> PipelineError {
    let left = deadline.map { ContinuousClock.now.duration(to: $0) } ?? .zero
    return PipelineError(
      .overloaded,
      "the image would be done in about \(wait.roundedSeconds) s, and its deadline is in \(left.roundedSeconds) s; "
        + "set a longer one or try again later",
      retryDelay: wait)
  }

  private var full: PipelineError {
    PipelineError(.overloaded, "\(memory.maxWaiting) images are waiting for a thread or memory; try again later")
  }
}

/// The estimated work that the threads do in a second, measured while images wait.
private struct WorkRate {
  private static let interval = Duration.milliseconds(250)

  private let threadCount: Int
  private var rate: Double
  /// The beginning of the current interval; `nil` while no image waits.
  private var began: ContinuousClock.Instant?
  private var work = Duration.zero

  init(threadCount: Int) {
    self.threadCount = threadCount
    rate = Double(threadCount)
  }

  /// Returns the time that work is expected to take.
  func time(for work: Duration) -> Duration { work / rate }

  mutating func begin(_ cost: Duration) { work += cost }

  mutating func measure(_ now: ContinuousClock.Instant, isBacklogged: Bool) {
    defer { if began == nil || !isBacklogged { (began, work) = (isBacklogged ? now : nil, .zero) } }
    guard let began, began.duration(to: now) >= Self.interval else { return }
    rate += (work / began.duration(to: now) - rate) * 0.3
    rate = min(max(rate, 0.05), Double(threadCount))
    (self.began, work) = (now, .zero)
  }
}

extension Duration {
  /// Seconds with two digits after the decimal point.
  fileprivate var roundedSeconds: Double { Double((self / .milliseconds(10)).rounded()) / 100 }
}
