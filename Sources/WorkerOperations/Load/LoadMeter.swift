internal import Synchronization

/// Measures the load of the worker over the last one to two seconds.
///
/// Balancers divide the rate of calls by the utilization to learn how many calls a worker can take, so both cover the
/// same time.
package final class LoadMeter: Sendable {
  /// The counts since an instant.
  private struct Window {
    let began: ContinuousClock.Instant
    var worked = Duration.zero
    var callCount = 0
    var failedCallCount = 0

    static func + (one: Self, other: Self) -> Self {
      Window(
        began: min(one.began, other.began), worked: one.worked + other.worked,
        callCount: one.callCount + other.callCount, failedCallCount: one.failedCallCount + other.failedCallCount)
    }
  }

  private struct State {
    var previous: Window
    var current: Window
    /// The number of threads that work now, and until when their work was added.
    var workingCount = 0
    var counted: ContinuousClock.Instant
  }

  private static let span = Duration.seconds(1)
  /// The minimum time of a rate; the first call of a worker would otherwise have a rate of thousands a second.
  private static let minimum = Duration.milliseconds(100)

  private let threadCount: Int
  private let memoryUtilization: @Sendable () -> Double
  private let now: @Sendable () -> ContinuousClock.Instant
  private let state: Mutex<State>

  /// Creates a meter.
  ///
  /// - Parameters:
  ///   - threadCount: The number of threads that work on images.
  ///   - memoryUtilization: Returns the used share of the memory for images, 0 to 1.
  ///   - now: Returns the current time.
  package init(
    threadCount: Int, memoryUtilization: @escaping @Sendable () -> Double,
    now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
  ) {
    self.threadCount = threadCount
    self.memoryUtilization = memoryUtilization
    self.now = now
    let start = Window(began: now())
    state = Mutex(State(previous: start, current: start, counted: start.began))
  }

  /// Notes that an image thread starts or stops working.
  package func note(isWorking: Bool) { update { $0.workingCount += isWorking ? 1 : -1 } }

  /// Adds a call that has ended.
  package func noteCall(isFailed: Bool) {
    update { state in
      state.current.callCount += 1
      if isFailed { state.current.failedCallCount += 1 }
    }
  }

  /// The load now.
  package var report: LoadReport {
    let recent = update { state in state.previous + state.current }
    let elapsed = max(recent.began.duration(to: now()), Self.minimum)
    let seconds = elapsed / .seconds(1)
    return LoadReport(
      // The thread for small images may work in addition.
      utilization: min(1, recent.worked / (elapsed * threadCount)), memoryUtilization: memoryUtilization(),
      callsPerSecond: Double(recent.callCount) / seconds, failedCallsPerSecond: Double(recent.failedCallCount) / seconds
    )
  }

  /// Changes the counts after old ones were dropped.
  private func update<Result>(_ body: (inout State) -> Result) -> Result {
    let time = now()
    return state.withLock { state in
      // Another thread may have been faster.
      let now = max(time, state.counted)
      state.current.worked += state.counted.duration(to: now) * state.workingCount
      state.counted = now
      let age = state.current.began.duration(to: now)
      if age >= Self.span {
        // After a pause nothing of what was before it counts, except what still goes on.
        let isStale = age >= Self.span * 2
        state.previous =
          isStale ? Window(began: now - Self.span, worked: Self.span * state.workingCount) : state.current
        state.current = Window(began: now)
      }
      return body(&state)
    }
  }
}
