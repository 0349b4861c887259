internal import Synchronization

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// The calling thread, where it is one of an executor's.
package enum WorkThread {
  /// Notes that the thread begins a piece of work that it can only return from.
  /// - `subject`: what logs call it, a format's name for example.
  package static func begin(_ subject: String) {
    guard let activity = pthread_getspecific(key) else { return }
    Unmanaged<ThreadActivity>.fromOpaque(activity).takeUnretainedValue().begin(subject)
  }

  /// Makes `activity` what the calling thread notes its work in.
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

/// A piece of work that a thread has not returned from.
package struct StuckWork: Sendable, Hashable {
  /// Which piece of work, and of which of the executor's threads.
  package struct ID: Sendable, Hashable {
    var thread: Int
    var piece: UInt64
  }

  package let id: ID
  /// What it is about, as `WorkThread.begin` was told; "unknown" where it was not.
  package let subject: String
  /// How long it has taken so far.
  package let duration: Duration
}

/// What one thread works on now.
final class ThreadActivity: Sendable {
  private struct State {
    var piece: UInt64 = 0
    /// `nil` while it waits for work.
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

  /// The work, where the thread has been at it for at least `duration`.
  func work(of thread: Int, longerThan duration: Duration) -> StuckWork? {
    state.withLock { state in
      guard let elapsed = state.since?.duration(to: .now), elapsed >= duration else { return nil }
      return StuckWork(id: .init(thread: thread, piece: state.piece), subject: state.subject, duration: elapsed)
    }
  }
}
