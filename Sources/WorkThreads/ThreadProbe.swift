internal import LibC
internal import Synchronization

/// Finds out how many more threads the system lets this process start.
package enum ThreadProbe {
  /// Held while threads are started, which wait for it.
  private static let gate = Mutex<Void>(())

  /// Starts threads that wait until all have started, and lets them end.
  ///
  /// - Parameter count: How many are started.
  /// - Returns: The number of threads that ran at the same time, and the error of the system if one was refused; otherwise
  ///   0.
  package static func start(_ count: Int) -> (startedCount: Int, errorNumber: Int32) {
    let (threads, status) = gate.withLock { _ in startThreads(count) }
    for thread in threads { pthread_join(thread, nil) }
    return (threads.count, status)
  }

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
}
