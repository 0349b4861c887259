/// The limits of the time for which the worker waits for a helper that does not use the CPU.
package struct HelperPatience: Sendable, Hashable {
  /// The maximum time for one image in which the helper uses less than a tenth of a processor.
  package var idle: Duration
  /// The maximum time after the image was cancelled.
  package var cancelled: Duration

  package init(idle: Duration = .seconds(30), cancelled: Duration = .seconds(2)) {
    self.idle = idle
    self.cancelled = cancelled
  }
}

/// Measures the time for which the worker waits for a helper while it works on one image.
///
/// A thread of the worker waits with the helper, so this time is limited whatever the helper does: it can neither reset
/// nor prolong it by answering. A busy helper has its limit of CPU time.
struct HelperWatch {
  /// The time after which the CPU time is read, which is a system call.
  private static let interval = Duration.milliseconds(100)
  /// The part of a processor of which a helper counts as busy; it may share processors with many others.
  private static let busyShare = 10

  private let patience: HelperPatience
  private var idle = Duration.zero
  /// The time since the CPU time was read.
  private var unread = Duration.zero
  private var cpuTime: UInt64
  private var turned = ContinuousClock.now
  /// When the cancellation was noticed.
  private var cancelled: ContinuousClock.Instant?

  /// - `cpuTime`: the CPU time in nanoseconds that the helper has used before the image.
  init(_ patience: HelperPatience, cpuTime: UInt64) {
    self.patience = patience
    self.cpuTime = cpuTime
  }

  /// Begins a wait; the time since the last one does not count.
  mutating func begin() { turned = .now }

  /// Accounts for the time since the last call, or since the wait began.
  ///
  /// - Parameters:
  ///   - isCancelled: Whether the image was cancelled.
  ///   - readCPUTime: Returns the CPU time that the helper has used.
  /// - Returns: Whether the helper must be ended.
  mutating func isOver(isCancelled: Bool, readCPUTime: () -> UInt64) -> Bool {
    let now = ContinuousClock.now
    unread += turned.duration(to: now)
    turned = now
    if unread >= Self.interval {
      let used = readCPUTime()
      let busy = Duration.nanoseconds(Int64(clamping: used - min(used, cpuTime))) * Self.busyShare
      idle += max(.zero, unread - busy)
      (unread, cpuTime) = (.zero, used)
    }
    if isCancelled, cancelled == nil { cancelled = now }
    return idle > patience.idle || (cancelled.map { $0.duration(to: now) > patience.cancelled } ?? false)
  }
}
