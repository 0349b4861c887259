internal import WorkerIsolation

/// The CPU time that a helper has used for one image, in nanoseconds.
struct HelperCPUTime {
  /// The time that the helper had used before the image.
  var before: UInt64 = 0
  private var used: UInt64 = 0
  private var taken: UInt64 = 0

  init(before: UInt64 = 0) { self.before = before }

  /// Notes how much the helper has used by now.
  mutating func note(_ process: HelperProcess) {
    let now = process.cpuTime
    if now > before { used = max(used, now - before) }
  }

  /// Returns the time that was noted since the last call.
  mutating func take() -> Duration {
    defer { taken = used }
    return .nanoseconds(Int64(clamping: used - taken))
  }
}
