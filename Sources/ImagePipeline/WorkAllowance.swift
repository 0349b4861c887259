internal import WorkThreads

/// Whether work on one image may go on: its caller still waits, and there is CPU time left.
///
/// Work checks it before every strip, of its input and of its results. What libraries do on threads of their own does not
/// count. A class because all renditions of an image, and their stages, share it.
final class WorkAllowance {
  private let cancellation: Cancellation
  /// The maximum CPU time; `nil` for any.
  private let limit: Duration?
  /// That of earlier portions of the work.
  private var used = Duration.zero
  // Of the portion under way, which stays on one thread.
  private var wall = ContinuousClock.now
  private var cpu = Duration.zero

  init(_ cancellation: Cancellation, limit: Duration?) {
    self.cancellation = cancellation
    self.limit = limit
  }

  /// A portion of work begins on this thread.
  func begin() {
    guard limit != nil else { return }
    (wall, cpu) = (.now, ThreadClock.now)
  }

  /// The portion is over.
  func end() {
    guard limit != nil else { return }
    used += ThreadClock.now - cpu
  }

  /// - Throws: `cancelled`, and `limitExceeded` once the CPU time is used up.
  func check() throws(PipelineError) {
    try cancellation.check()
    // No thread has had a CPU for longer than the wall clock shows, and that is cheaper to read.
    guard let limit, used + wall.duration(to: .now) > limit else { return }
    let total = used + (ThreadClock.now - cpu)
    guard total > limit else { return }
    throw PipelineError(
      exceeding: "max_cpu_seconds_per_image", limit: UInt64(clamping: limit.components.seconds),
      value: UInt64(clamping: total.components.seconds + 1), unit: "seconds of CPU time or more")
  }
}
