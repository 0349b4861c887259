import CSandbox

@testable import WorkerIsolation

/// The acts of a helper that was taken over.
extension HelperConnection {
  /// Waits without end.
  static func wait() -> Never { while true { csandbox_wait(-1, -1, -1) } }

  /// Tries everything that the sandbox must refuse.
  /// - Returns: The error number of each attempt by its name; 0 if it succeeded.
  static func attempts() -> [String: Int32] {
    var results: [String: Int32] = [:]
    var index = 0
    while let name = csandbox_attempt_name(index) {
      results[String(cString: name)] = csandbox_attempt(index)
      index += 1
    }
    return results
  }

  /// Overwrites the number of the cancelled work, which the worker shares with this process.
  func overwriteCancellation(_ number: UInt32) { csandbox_flag_set(helper.shared, number) }

  /// Requests a temporary file.
  ///
  /// - `byteCount`: its size in bytes.
  /// - `isReceived`: whether to receive it.
  /// - Returns: Whether a file was received.
  func requestFile(byteCount: UInt64, isReceived: Bool) -> Bool {
    var size = byteCount
    guard csandbox_send(helper.files, &size, MemoryLayout<UInt64>.size, -1), isReceived else { return false }
    var file: Int32 = -1
    return csandbox_receive(helper.files, &size, MemoryLayout<UInt64>.size, &file, -1) > 0 && file >= 0
  }

  /// Closes both sockets and goes on.
  func hangUp() {
    csandbox_close(helper.socket)
    csandbox_close(helper.files)
  }

  /// Ends the process with a status that has no meaning.
  static func exit() -> Never { csandbox_exit(99) }

  /// Waits for some milliseconds and uses a little CPU time.
  static func pause(milliseconds: Int32) { csandbox_wait(-1, -1, milliseconds) }
}
