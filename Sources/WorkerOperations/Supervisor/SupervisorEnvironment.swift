/// The environment that a service manager, such as systemd, has passed to the process that it started.
///
/// The variables are those of sd_notify(3), sd_watchdog_enabled(3) and sd_listen_fds(3).
package struct SupervisorEnvironment: Sendable {
  /// The first descriptor of a socket that is passed to a process.
  private static let firstDescriptor: CInt = 3

  /// The path of the socket for reports; `nil` if nobody wants them.
  package let notificationPath: String?
  /// How often the process must report that it is alive; `nil` if nobody waits for it.
  package let watchdogTimeout: Duration?
  /// The descriptor of the socket to listen on; `nil` if there is none.
  package let listeningDescriptor: CInt?

  /// Reads the variables that are meant for this process.
  ///
  /// - Throws: `Failure` if more than one socket was passed, because only one can be used.
  package init(_ variables: [String: String], processID: Int32) throws(Failure) {
    notificationPath = variables["NOTIFY_SOCKET"].flatMap { $0.isEmpty ? nil : $0 }
    let isWatched = variables["WATCHDOG_PID"].map { $0 == "\(processID)" } ?? true
    let timeout = variables["WATCHDOG_USEC"].flatMap(Int64.init) ?? 0
    watchdogTimeout = isWatched && timeout > 0 ? .microseconds(timeout) : nil
    // Variables that a parent has left behind are for its descriptors, not for ours.
    let isMeant = variables["LISTEN_PID"] == "\(processID)"
    let count = isMeant ? variables["LISTEN_FDS"].flatMap(Int.init) ?? 0 : 0
    guard count <= 1 else { throw Failure(socketCount: count) }
    listeningDescriptor = count == 1 ? Self.firstDescriptor : nil
  }

  /// The error of more sockets than the worker listens on.
  package struct Failure: Error, CustomStringConvertible {
    /// The number of sockets that were passed.
    package let socketCount: Int

    package var description: String {
      "LISTEN_FDS is \(socketCount); the worker listens on one socket, so pass only that of gRPC"
    }
  }
}
