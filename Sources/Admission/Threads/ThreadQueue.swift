package import ImagePipeline
internal import Synchronization
package import WorkThreads

/// The client that an image is processed for.
package struct ImageCaller: Sendable {
  /// The caller or connection, which shares the image threads equally with others.
  package var connection: String
  /// The time at which the client stops waiting; `nil` if it did not say.
  package var deadline: ContinuousClock.Instant?
  /// Whether `expect` has promised that the image may enter.
  package var isPromised = false

  /// Describes the client of a connection.
  package init(connection: String = "", deadline: ContinuousClock.Instant? = nil) {
    self.connection = connection
    self.deadline = deadline
  }

  /// A caller with an identity has one share of the image threads, however many connections it opens; without one, each
  /// connection has a share.
  package init(identity: String?, peer: String, deadline: ContinuousClock.Instant?) {
    self.init(connection: identity.map { "identity:\($0)" } ?? peer, deadline: deadline)
  }
}

/// Decides which of the waiting images an image thread begins next.
///
/// Callers, or connections without one, get equal shares of the time (`FairQueue`). An image is refused at once if the
/// images before it will take longer than its client waits, or than the queue may last, because work on it would be
/// wasted. Images that have begun are not affected: their threads continue with them first. So that small images need
/// not wait for large ones that have begun, they may use a thread of their own, the express lane.
package final class ThreadQueue: Sendable {
  /// The threads that an image is processed on.
  package enum Lane: Sendable { case main, express }

  /// A thread that an image may begin on.
  package struct Place: Sendable {
    /// The threads that it belongs to.
    package let lane: Lane
    /// The time that the caller's share was charged; `nil` if the image did not wait with others for its turn.
    var charged: Duration?
  }

  /// The outcome of the wait.
  enum Outcome: Sendable { case begin(Place), cancelled, late }

  struct Entry {
    let deadline: ContinuousClock.Instant?
    let cost: ImageCost
    let waiter = Waiter<Outcome>()
  }

  struct State {
    var waiting = FairQueue<Entry>()
    /// The number of images that may begin on the main threads and have not reached one yet.
    var grantedCount = 0
    /// Whether an image may begin on the express thread and has not reached it yet.
    var isExpressGranted = false
    var rate: WorkRate
    /// The images of calls whose messages have not arrived, by caller.
    var expected: [String: Expected] = [:]
  }

  /// The part of the time until a deadline that waiting images may take; the rest is for errors of the estimate.
  static let usableShare = 0.8
  /// The maximum estimated time of an image that may use the express lane.
  static let maxExpressCost = Duration.milliseconds(10)

  let main: ImageExecutor
  let express: ImageExecutor
  let memory: MemoryBudget
  /// The maximum estimated wait; `nil` for no limit.
  let maxWait: Duration?
  let state: Mutex<State>
  private let waited: WaitObserver
  /// The estimates of the images' costs.
  package let costs: CostModel

  /// Creates a queue for the main threads and the express thread.
  ///
  /// - `memory`: the budget that limits how many images wait.
  /// - `maxWait`: the maximum estimated wait; `nil` for no limit.
  /// - `maxPixelCount`: the maximum number of pixels of an image.
  /// - `waited`: receives the waits.
  package init(
    executor: ImageExecutor, express: ImageExecutor, memory: MemoryBudget, maxWait: Duration?,
    maxPixelCount: Int = .max,
    waited: @escaping WaitObserver = { _, _ in }
  ) {
    main = executor
    self.express = express
    self.memory = memory
    self.maxWait = maxWait
    self.waited = waited
    costs = CostModel(maxPixelCount: maxPixelCount)
    state = Mutex(State(rate: WorkRate(threadCount: executor.threadCount, expressCount: express.threadCount)))
  }

  /// The number of images that wait for a thread.
  package var waitingCount: Int {
    state.withLock { $0.waiting.count + $0.grantedCount + ($0.isExpressGranted ? 1 : 0) }
  }

  /// The threads of a lane.
  package func executor(of lane: Lane) -> ImageExecutor { lane == .main ? main : express }

  // MARK: Wait

  /// Waits until a thread may begin with an image; call `begin` when it does, and `end` afterwards.
  ///
  /// - Parameters:
  ///   - caller: The client that the image belongs to.
  ///   - cost: The estimated cost of the image.
  ///   - cancellation: Ends the wait when it is cancelled.
  /// - Returns: The place to process the image on.
  /// - Throws: `overloaded` if too many images wait, or if the wait would be too long; `cancelled`.
  package func enter(
    _ caller: ImageCaller, cost: ImageCost, cancellation: Cancellation
  ) async throws(PipelineError) -> Place {
    try cancellation.check()
    let idle = Idle(self)
    let entry = Entry(deadline: caller.deadline, cost: cost)
    let (lane, id) = try state.withLock { state throws(PipelineError) -> (Lane?, id: UInt64) in
      state.expected[caller.connection]?.learn(cost.duration)
      if let lane = try decide(caller, cost: cost, idle, &state) { return (lane, 0) }
      return (nil, state.waiting.append(entry, to: caller.connection, cost: cost.duration, kind: cost.kind))
    }
    if let lane { return Place(lane: lane) }
    let began = ContinuousClock.now
    let outcome = await entry.waiter.outcome(or: .cancelled, when: cancellation) { [self] in
      state.withLock { $0.waiting.remove(id, from: caller.connection) } != nil
    }
    waited(.thread, began.duration(to: .now))
    switch outcome {
    case .begin(let place): return place
    case .cancelled: throw .cancelled
    case .late: throw tooLate(wait: cost.duration, deadline: caller.deadline)
    }
  }

  /// Records that a thread has begun with an image, and lets the next one begin.
  package func begin(_ lane: Lane = .main) {
    guard lane == .main else { return state.withLock { $0.isExpressGranted = false } }
    let now = ContinuousClock.now
    let idleCount = main.idleThreadCount
    let ended: [(Entry, Outcome)] = state.withLock { state in
      state.grantedCount -= 1
      var ended: [(Entry, Outcome)] = []
      while state.grantedCount < max(1, idleCount), let entry = state.waiting.popFirst() {
        guard !entry.isLate(now) else {
          ended.append((entry, .late))
          continue
        }
        ended.append((entry, .begin(Place(lane: .main, charged: entry.cost.duration))))
        state.grantedCount += 1
        state.rate.begin(entry.cost.duration)
      }
      state.rate.measure(now, isBacklogged: state.waiting.count > 0)
      return ended
    }
    for (entry, outcome) in ended { entry.waiter.end(outcome) }
  }

  /// Records the end of an image that has begun, and corrects what its caller was charged.
  ///
  /// - `used`: the CPU time that it took.
  package func end(_ place: Place, _ caller: ImageCaller, used: Duration) {
    let now = ContinuousClock.now
    let ended: [(Entry, Outcome)] = state.withLock { state in
      if let charged = place.charged, state.waiting.count > 0 {
        state.waiting.correct(used - charged, of: caller.connection)
      }
      return place.lane == .express ? grantExpress(&state, now) : []
    }
    for (entry, outcome) in ended { entry.waiter.end(outcome) }
  }

  /// Lets a small image that waits begin on the express thread, which other work has left.
  package func offerExpress() {
    let ended = state.withLock { grantExpress(&$0, .now) }
    for (entry, outcome) in ended { entry.waiter.end(outcome) }
  }

  private func grantExpress(_ state: inout State, _ now: ContinuousClock.Instant) -> [(Entry, Outcome)] {
    var ended: [(Entry, Outcome)] = []
    while !state.isExpressGranted, let entry = state.waiting.popFirst(where: { $0.cost.isSmall }) {
      let place = Place(lane: .express, charged: entry.cost.duration)
      ended.append((entry, entry.isLate(now) ? .late : .begin(place)))
      guard !entry.isLate(now) else { continue }
      state.isExpressGranted = true
      state.rate.begin(entry.cost.duration)
    }
    return ended
  }
}

extension ThreadQueue.Entry {
  fileprivate func isLate(_ now: ContinuousClock.Instant) -> Bool { deadline.map { now + cost.duration > $0 } ?? false }
}

extension ImageCost {
  /// Whether the image is known to take so little time that a thread is kept for such images.
  var isSmall: Bool { isKnown && duration <= ThreadQueue.maxExpressCost }
}

/// The estimated CPU time of images that the threads get in a second, measured while images wait.
struct WorkRate {
  private static let interval = Duration.milliseconds(250)

  private let maxRate: Double
  private var rate: Double
  /// The beginning of the current interval; `nil` while no image waits.
  private var began: ContinuousClock.Instant?
  private var work = Duration.zero

  /// - `threadCount`: the number of threads for all images.
  /// - `expressCount`: the number of further threads, for small images.
  init(threadCount: Int, expressCount: Int) {
    maxRate = Double(threadCount + expressCount)
    rate = Double(threadCount)
  }

  /// Returns the time that work is expected to take.
  func time(for work: Duration) -> Duration { work / rate }

  mutating func begin(_ cost: Duration) { work += cost }

  mutating func measure(_ now: ContinuousClock.Instant, isBacklogged: Bool) {
    defer { if began == nil || !isBacklogged { (began, work) = (isBacklogged ? now : nil, .zero) } }
    guard let began, began.duration(to: now) >= Self.interval else { return }
    rate += (work / began.duration(to: now) - rate) * 0.3
    rate = min(max(rate, 0.05), maxRate)
    (self.began, work) = (now, .zero)
  }
}
