internal import Dispatch
internal import LibC
internal import Logging
internal import Synchronization
internal import UnixSignals
internal import WorkerTelemetry

/// Sees to it that the process ends, whatever a library or a client does.
///
/// Its timers run on a thread of their own, which needs neither an event loop nor Swift's threads.
final class ProcessEnd: Sendable {
  private struct State {
    var hasTimedOut = false
    /// Which of its limits holds: the last one.
    var limit = 0
  }

  private let logger: Logger
  private let queue = DispatchQueue(label: "process end", qos: .userInitiated)
  private let state = Mutex(State())

  init(logger: Logger) { self.logger = logger }

  /// Whether the drain was over before the work in flight was.
  var hasTimedOut: Bool { state.withLock { $0.hasTimedOut } }

  func noteTimeout() { state.withLock { $0.hasTimedOut = true } }

  /// Ends the process with status 1 after a time, unless a later limit takes the place of this one.
  func limit(to duration: Duration) {
    let limit = state.withLock { state in
      state.limit += 1
      return state.limit
    }
    let milliseconds = duration.components.seconds * 1000 + duration.components.attoseconds / 1_000_000_000_000_000
    queue.asyncAfter(deadline: .now() + .milliseconds(Int(milliseconds))) {
      guard self.state.withLock({ $0.limit }) == limit else { return }
      self.logger.error("exiting with work that cannot be cancelled")
      Self.exit(1)
    }
  }

  /// Calls `drain` at the first SIGTERM or SIGINT, also one that comes before the services run, and ends the process at
  /// the second.
  func watchSignals(_ drain: () async -> Void) async {
    var count = 0
    for await signal in await UnixSignalsSequence(trapping: .sigterm, .sigint) {
      count += 1
      if count == 1 { await drain() }
      guard count > 1 else { continue }
      logger.warning("exiting because of a second signal", metadata: ["signal": "\(signal)"])
      Self.exit(signal == .sigint ? 130 : 143)
    }
  }

  /// Without what libraries have registered for the end of a process, which may wait for what is stuck.
  private static func exit(_ status: Int32) {
    LogWriter.standardError.flush(timeout: .milliseconds(200))
    _exit(status)
  }
}
