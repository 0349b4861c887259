internal import SystemPackage
internal import WorkThreads
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

  private static func threadProblem(count: Int) -> String? {
    let (startedCount, errorNumber) = ThreadProbe.start(count)
    if errorNumber == 0 { return nil }
    return
      "the system refuses to start thread \(startedCount + 1) of \(count): \(Errno(rawValue: errorNumber)); raise the "
      + "limit of processes (ulimit -u, or pids.max of the control group)"
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
