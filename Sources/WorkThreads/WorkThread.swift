internal import LibC
internal import Synchronization

/// The calling thread, if it belongs to an `ImageExecutor`.
package enum WorkThread {
  /// Records the start of a piece of work that cannot be interrupted.
  /// - `subject`: the name of the work in logs, for example an image format.
  package static func begin(_ subject: String) {
    guard let activity = pthread_getspecific(key) else { return }
    Unmanaged<ThreadActivity>.fromOpaque(activity).takeUnretainedValue().begin(subject)
  }

  /// Sets the `activity` in which the calling thread records its work.
  ///
  /// It must outlive the thread.
  static func note(in activity: ThreadActivity) {
    pthread_setspecific(key, Unmanaged.passUnretained(activity).toOpaque())
  }

  private static let key: pthread_key_t = {
    var key = pthread_key_t()
    let status = pthread_key_create(&key, nil)
    precondition(status == 0, "the system refused a key: error \(status)")
    return key
  }()
}

/// A piece of work that a thread has not completed in time.
package struct StuckWork: Sendable, Hashable {
  /// An identifier of a piece of work, unique in the process.
  package struct ID: Sendable, Hashable {
    var thread: Int
    var piece: UInt64
  }

  package let id: ID
  /// The subject given to `WorkThread.begin`; "unknown" if there was none.
  package let subject: String
  /// The time since the work started.
  package let duration: Duration
}

/// The current work of one thread.
final class ThreadActivity: Sendable {
  private struct State {
    var piece: UInt64 = 0
    /// The start of the work; `nil` while the thread is idle.
    var since: ContinuousClock.Instant?
    var subject = unknownSubject
  }

  static let unknownSubject = "unknown"
  private let state = Mutex(State())

  func begin(_ subject: String) {
    state.withLock { state in
      state.piece += 1
      state.since = .now
      state.subject = subject
    }
  }

  func end() { state.withLock { $0.since = nil } }

  /// Returns the current work if it started at least `duration` ago.
  func work(of thread: Int, longerThan duration: Duration) -> StuckWork? {
    state.withLock { state in
      guard let elapsed = state.since?.duration(to: .now), elapsed >= duration else { return nil }
      return StuckWork(id: .init(thread: thread, piece: state.piece), subject: state.subject, duration: elapsed)
    }
  }
}

/// The CPU clock of the calling thread.
package enum ThreadClock {
  /// The CPU time that the calling thread has used so far.
  ///
  /// Reading it takes a system call, about 250 ns.
  package static var now: Duration {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
  }
}
