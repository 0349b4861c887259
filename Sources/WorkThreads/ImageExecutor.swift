internal import Synchronization

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// The threads that decode, resize and encode: as many as cores, apart from the event loops and from the cooperative
/// pool, so that the worker answers while every core is busy with images.
///
/// Use it as a task's preferred executor: `withTaskExecutorPreference(executor) { await image.push(bytes) }`.
/// Jobs run in the order in which they were enqueued. The threads end when the last reference to the executor goes.
package final class ImageExecutor: TaskExecutor {
  private let queue: JobQueue
  private let activities: [ThreadActivity]
  private let threadCount: Int

  /// Starts `threadCount` threads, at least 1.
  /// - `niceness`: added to the threads' nice value on Linux, so that a busy worker's event loops come first.
  package init(threadCount: Int, niceness: Int32 = 5) {
    queue = JobQueue()
    self.threadCount = max(1, threadCount)
    activities = (0..<self.threadCount).map { _ in ThreadActivity() }
    for activity in activities { Self.startThread(running: queue, noting: activity, niceness: niceness) }
  }

  deinit { queue.close() }

  /// The threads that run nothing now.
  package var idleThreadCount: Int { threadCount - queue.busyCount }

  package func enqueue(_ job: consuming ExecutorJob) {
    queue.append(UnownedJob(job), executor: asUnownedTaskExecutor())
  }

  /// What threads have worked on for longer than `duration` without returning.
  ///
  /// A piece of work begins with a job, and with each `WorkThread.begin` in it.
  package func stuckWork(longerThan duration: Duration) -> [StuckWork] {
    activities.enumerated().compactMap { $1.work(of: $0, longerThan: duration) }
  }

  private static func startThread(running queue: JobQueue, noting activity: ThreadActivity, niceness: Int32) {
    final class Start {
      let queue: JobQueue
      let activity: ThreadActivity
      let niceness: Int32
      init(queue: JobQueue, activity: ThreadActivity, niceness: Int32) {
        self.queue = queue
        self.activity = activity
        self.niceness = niceness
      }
    }
    let start = Unmanaged.passRetained(Start(queue: queue, activity: activity, niceness: niceness)).toOpaque()
    #if os(Linux)
      var thread = pthread_t()
      let status = pthread_create(
        &thread, nil,
        { argument in
          let start = Unmanaged<Start>.fromOpaque(argument!).takeRetainedValue()
          // On Linux the nice value belongs to the thread, and 0 names the caller.
          setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, start.niceness)
          start.queue.runUntilClosed(noting: start.activity)
          return nil
        }, start)
    #else
      var thread: pthread_t?
      let status = pthread_create(
        &thread, nil,
        { argument in
          let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
          start.queue.runUntilClosed(noting: start.activity)
          return nil
        }, start)
    #endif
    precondition(status == 0, "the operating system refused to create a thread: error \(status)")
    #if os(Linux)
      pthread_detach(thread)
    #else
      if let thread { pthread_detach(thread) }
    #endif
  }
}

/// First in, first out; threads sleep while it is empty.
///
/// Unchecked: the mutex and the condition guard every stored property, and they live at addresses of their own because
/// the system keeps them.
private final class JobQueue: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  // A ring would save the reversal, but a job is worth some hundred microseconds of work.
  private var incoming: [(UnownedJob, UnownedTaskExecutor)] = []
  private var outgoing: [(UnownedJob, UnownedTaskExecutor)] = []
  private var isClosed = false
  private var runningCount = 0

  init() {
    pthread_mutex_init(mutex, nil)
    pthread_cond_init(condition, nil)
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  func append(_ job: UnownedJob, executor: UnownedTaskExecutor) {
    pthread_mutex_lock(mutex)
    incoming.append((job, executor))
    pthread_mutex_unlock(mutex)
    pthread_cond_signal(condition)
  }

  func close() {
    pthread_mutex_lock(mutex)
    isClosed = true
    pthread_mutex_unlock(mutex)
    pthread_cond_broadcast(condition)
  }

  func runUntilClosed(noting activity: ThreadActivity) {
    WorkThread.note(in: activity)
    while let (job, executor) = next() {
      activity.begin(ThreadActivity.unknownSubject)
      job.runSynchronously(on: executor)
      activity.end()
      noteEnd()
    }
    withExtendedLifetime(activity) {}
  }

  /// The jobs that run now.
  var busyCount: Int {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return runningCount
  }

  private func noteEnd() {
    pthread_mutex_lock(mutex)
    runningCount -= 1
    pthread_mutex_unlock(mutex)
  }

  private func next() -> (UnownedJob, UnownedTaskExecutor)? {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while true {
      if outgoing.isEmpty {
        outgoing = incoming.reversed()
        incoming.removeAll(keepingCapacity: true)
      }
      if let job = outgoing.popLast() {
        runningCount += 1
        return job
      }
      if isClosed { return nil }
      pthread_cond_wait(condition, mutex)
    }
  }
}
