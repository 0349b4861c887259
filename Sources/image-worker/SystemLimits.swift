internal import LibC
internal import Synchronization
internal import SystemPackage
internal import WorkerOperations

/// The limits of the system below which a command ends in a library, or never.
enum SystemLimits {
  /// Threads of each command: of Swift, its dispatcher and its timers, apart from one for each core.
  private static let commandThreadCount = 4

  /// Why commands cannot run, as the system has no threads for them; `nil` if it has.
  static var threadProblem: String? { threadProblem(count: commandThreadCount + SystemInfo.coreCount) }

  /// Checks that the system has threads for the worker and its helpers.
  static func checkThreads(threadCount: Int) throws(SettingsError) {
    // Each core has an event loop, and each thread for images a helper.
    let count = commandThreadCount + 12 + 2 * SystemInfo.coreCount + 2 * threadCount
    if let problem = threadProblem(count: count) { throw SettingsError(description: problem) }
  }

  /// Held while threads are started, which wait for it.
  private static let gate = Mutex<Void>(())

  /// Starts so many threads, which wait until all have started, and lets them end.
  /// - Returns: Why that is not possible; `nil` if it is.
  private static func threadProblem(count: Int) -> String? {
    let (threads, status) = gate.withLock { _ in startThreads(count) }
    for thread in threads { pthread_join(thread, nil) }
    if status == 0 { return nil }
    return "the system refuses to start thread \(threads.count + 1) of \(count): \(Errno(rawValue: status)); raise the "
      + "limit of processes (ulimit -u, or pids.max of the control group)"
  }

  /// Starts threads that end when the gate opens, until one is refused.
  private static func startThreads(_ count: Int) -> (threads: [pthread_t], status: Int32) {
    var threads: [pthread_t] = []
    var status: Int32 = 0
    while threads.count < count, status == 0 {
      #if os(Linux)
        var thread = pthread_t()
        status = pthread_create(&thread, nil, waitForGate, nil)
        if status == 0 { threads.append(thread) }
      #else
        var thread: pthread_t?
        status = pthread_create(&thread, nil, { _ in waitForGate(nil) }, nil)
        if let thread { threads.append(thread) }
      #endif
    }
    return (threads, status)
  }

  /// The work of a thread.
  ///
  /// As a closure of `startThreads` it crashes the compiler of Swift 6.3.1.
  private static let waitForGate: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { _ in
    gate.withLock { _ in }
    return nil
  }

  /// Checks that the worker has descriptors for itself and a few connections.
  static func checkDescriptors(threadCount: Int) throws(SettingsError) {
    let minimum = minDescriptorCount(coreCount: SystemInfo.coreCount, threadCount: threadCount)
    guard SpareDescriptors.limit < minimum else { return }
    throw SettingsError(
      description:
        "the limit of open files is \(SpareDescriptors.limit); with \(threadCount) threads this worker needs "
        + "\(minimum); raise it (ulimit -n, or LimitNOFILE of systemd)")
  }

  /// Each event loop has three descriptors, and each thread for images two; 18 are for the rest, 16 are kept free, and 6
  /// are for connections.
  static func minDescriptorCount(coreCount: Int, threadCount: Int) -> Int { 40 + 3 * coreCount + 2 * threadCount }
}
