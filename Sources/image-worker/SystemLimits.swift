internal import LibC
internal import SystemPackage
internal import WorkerOperations

/// The limits of the system below which a command ends in a library, or never.
enum SystemLimits {
  /// Why commands cannot run, as the system has no thread for them; `nil` if it has.
  static var threadProblem: String? {
    #if os(Linux)
      var thread = pthread_t()
      let status = pthread_create(&thread, nil, { _ in nil }, nil)
      if status == 0 { pthread_join(thread, nil) }
    #else
      var thread: pthread_t?
      let status = pthread_create(&thread, nil, { _ in nil }, nil)
      if let thread { pthread_join(thread, nil) }
    #endif
    if status == 0 { return nil }
    return "the system refuses to start a thread: \(Errno(rawValue: status)); raise the limit of processes (ulimit -u, "
      + "or pids.max of the control group)"
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
