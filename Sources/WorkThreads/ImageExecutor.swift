internal import LibC
internal import Synchronization

/// A task executor with its own threads for decoding, resizing and encoding.
///
/// The threads are separate from the event loops and from the cooperative pool, so the worker responds while every core
/// is busy with images. Use it as a task's preferred executor: `withTaskExecutorPreference(executor) { await
/// image.push(bytes) }`. Jobs start in the order in which they were enqueued. The threads end after the last reference
/// to the executor is released.
package final class ImageExecutor: TaskExecutor {
  private let queue: JobQueue
  private let activities: [ThreadActivity]
  /// The number of the first thread, unique in the process.
  private let firstThread: Int
  private static let nextThread = Atomic<Int>(0)
  /// The number of threads.
  package let threadCount: Int

  /// Starts `threadCount` threads, at least 1.
  /// - `niceness`: the increase of the threads' nice value on Linux, which gives priority to the event loops.
  package init(threadCount: Int, niceness: Int32 = 5) {
    queue = JobQueue()
    self.threadCount = max(1, threadCount)
    firstThread = Self.nextThread.add(self.threadCount, ordering: .relaxed).oldValue
    activities = (0..<self.threadCount).map { _ in ThreadActivity() }
    for activity in activities { Self.startThread(running: queue, noting: activity, niceness: niceness) }
  }

  deinit { queue.close() }

  /// The number of threads that are not running a job.
  package var idleThreadCount: Int { threadCount - queue.busyCount }

  package func enqueue(_ job: consuming ExecutorJob) {
    queue.append(UnownedJob(job), executor: asUnownedTaskExecutor())
  }

  /// Returns the work that threads have not completed within `duration`.
  ///
  /// A piece of work starts with each job and with each call to `WorkThread.begin` in it.
  package func stuckWork(longerThan duration: Duration) -> [StuckWork] {
    activities.enumerated().compactMap { $1.work(of: firstThread + $0, longerThan: duration) }
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
          // On Linux each thread has its own nice value, and 0 selects the calling thread.
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

/// A first-in, first-out queue of jobs; threads sleep while it is empty.
///
/// It is unchecked because the mutex guards every mutable property. The mutex and the condition have their own
/// allocations, because the system keeps their addresses.
private final class JobQueue: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  // A ring would avoid the reversal, but a job takes several hundred microseconds of work.
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
    var hasRun = false
    while let (job, executor) = next(after: hasRun) {
      activity.begin(ThreadActivity.unknownSubject)
      job.runSynchronously(on: executor)
      activity.end()
      hasRun = true
    }
    withExtendedLifetime(activity) {}
  }

  /// The number of jobs that are running.
  var busyCount: Int {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return runningCount
  }

  /// Waits for the next job; returns `nil` when the queue is closed and empty.
  ///
  /// - `hasRun`: whether the thread has run another one before, which has ended.
  private func next(after hasRun: Bool) -> (UnownedJob, UnownedTaskExecutor)? {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    if hasRun { runningCount -= 1 }
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
