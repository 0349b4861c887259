/// The limits of the time for which the worker waits for a helper that does not use the CPU.
package struct HelperTimeouts: Sendable, Hashable {
  /// The maximum time for one image in which the helper uses, and waits for, less than a tenth of a processor.
  package var idle: Duration
  /// The maximum time after the image was cancelled.
  package var cancelled: Duration

  package init(idle: Duration = .seconds(30), cancelled: Duration = .seconds(2)) {
    self.idle = idle
    self.cancelled = cancelled
  }
}

/// Measures the time for which the worker waits for a helper that does nothing while it should work on one image.
///
/// A thread of the worker waits with the helper, so this time is limited whatever the helper does: it can neither reset
/// nor prolong it by answering. A busy helper has its limit of CPU time. One that is ready and gets no processor, because
/// other processes want them, is not idle.
struct HelperWatch {
  /// The time after which the helper's time is read, which takes a few system calls.
  private static let interval = Duration.milliseconds(100)
  /// The part of a processor of which a helper counts as busy; it may share processors with many others.
  private static let busyShare = 10

  private let timeouts: HelperTimeouts
  private var idle = Duration.zero
  /// The time since it was read.
  private var unread = Duration.zero
  private var activeTime: UInt64
  private var turned = ContinuousClock.now
  /// When the cancellation was noticed.
  private var cancelled: ContinuousClock.Instant?

  /// - `activeTime`: at most the time in nanoseconds for which the helper was active before the image.
  init(_ timeouts: HelperTimeouts, activeTime: UInt64) {
    self.timeouts = timeouts
    self.activeTime = activeTime
  }

  /// Begins a wait; the time since the last one does not count.
  mutating func begin() { turned = .now }

  /// Accounts for the time since the last call, or since the wait began.
  ///
  /// - Parameters:
  ///   - isCancelled: Whether the image was cancelled.
  ///   - readActiveTime: Returns the time in nanoseconds for which the helper has used a processor or waited for one.
  /// - Returns: Whether the helper must be ended.
  mutating func isOver(isCancelled: Bool, readActiveTime: () -> UInt64) -> Bool {
    let now = ContinuousClock.now
    unread += turned.duration(to: now)
    turned = now
    if unread >= Self.interval {
      let active = readActiveTime()
      let busy = Duration.nanoseconds(Int64(clamping: active - min(active, activeTime))) * Self.busyShare
      idle += max(.zero, unread - busy)
      (unread, activeTime) = (.zero, active)
    }
    if isCancelled, cancelled == nil { cancelled = now }
    return idle > timeouts.idle || (cancelled.map { $0.duration(to: now) > timeouts.cancelled } ?? false)
  }
}
