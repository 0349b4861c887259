internal import LibC
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

  /// Starts so many threads, which wait until all have started, and lets them end.
  /// - Returns: Why that is not possible; `nil` if it is.
  private static func threadProblem(count: Int) -> String? {
    let gate = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    defer { gate.deallocate() }
    pthread_mutex_init(gate, nil)
    pthread_mutex_lock(gate)
    var threads: [pthread_t] = []
    var status: Int32 = 0
    while threads.count < count, status == 0 {
      #if os(Linux)
        var thread = pthread_t()
        status = pthread_create(&thread, nil, waitAndEnd, gate)
        if status == 0 { threads.append(thread) }
      #else
        var thread: pthread_t?
        status = pthread_create(&thread, nil, { waitAndEnd($0) }, gate)
        if let thread { threads.append(thread) }
      #endif
    }
    pthread_mutex_unlock(gate)
    for thread in threads { pthread_join(thread, nil) }
    pthread_mutex_destroy(gate)
    if status == 0 { return nil }
    return "the system refuses to start thread \(threads.count + 1) of \(count): \(Errno(rawValue: status)); raise the "
      + "limit of processes (ulimit -u, or pids.max of the control group)"
  }

  /// Waits until the mutex is free.
  private static let waitAndEnd: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { gate in
    guard let gate = gate?.assumingMemoryBound(to: pthread_mutex_t.self) else { return nil }
    pthread_mutex_lock(gate)
    pthread_mutex_unlock(gate)
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
