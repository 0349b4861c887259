internal import ImageCodecs
internal import WorkThreads

/// Decides whether work on one image may continue: the caller has not cancelled it, and CPU time is left.
///
/// Work checks it before every strip of its input and of its results. The CPU time of threads that libraries create is
/// not counted. It is a class because all renditions of an image and their stages share it.
final class WorkAllowance {
  private let cancellation: Cancellation
  /// The maximum CPU time; `nil` for no limit.
  private let limit: Duration?
  /// The CPU time of earlier portions of the work.
  private(set) var used: Duration
  /// The CPU time of the thread at the start of the current portion, which stays on one thread.
  private var cpu = Duration.zero
  /// The time before which the portion cannot have used up the CPU time.
  private var soonest: ContinuousClock.Instant

  /// - `used`: the CPU time of work on the image that other allowances counted.
  init(_ cancellation: Cancellation, limit: Duration?, used: Duration = .zero) {
    self.cancellation = cancellation
    self.limit = limit
    self.used = used
    soonest = .now + (limit ?? .zero) - used
  }

  /// Starts counting a portion of work on the current thread.
  func begin() {
    guard let limit else { return }
    (soonest, cpu) = (.now + (limit - used), ThreadClock.now)
  }

  /// Ends the portion; must be called on the thread that called `begin`.
  func end() {
    guard limit != nil else { return }
    used += ThreadClock.now - cpu
  }

  /// Throws an error if the work must stop.
  /// - Throws: `cancelled`; `limitExceeded` once the CPU time is used up.
  func check() throws(PipelineError) {
    try cancellation.check()
    // The wall clock bounds the thread's CPU time from above and is cheaper to read.
    guard let limit, .now > soonest else { return }
    let total = used + (ThreadClock.now - cpu)
    guard total > limit else { return }
    throw PipelineError(
      exceeding: "max_cpu_seconds_per_image", limit: UInt64(clamping: limit.components.seconds),
      value: UInt64(clamping: total.components.seconds + 1), unit: "seconds of CPU time or more")
  }
}

extension Encoder {
  /// Completes a frame or the image, which may be a long call.
  /// - Throws: The errors of the codec and of `WorkAllowance.check`.
  mutating func finish(_ part: Part = .image, within allowance: WorkAllowance) throws(PipelineError) {
    do { try finish(part) { (try? allowance.check()) != nil } } catch {
      throw try PipelineError(interruption: error, allowance)
    }
  }
}

extension PipelineError {
  /// Creates the error of a codec that may have been interrupted.
  /// - Throws: The error of `WorkAllowance.check` instead, if that was the reason.
  init(interruption error: CodecError, _ allowance: WorkAllowance) throws(PipelineError) {
    if error.code == .interrupted { try allowance.check() }
    self.init(error)
  }
}
