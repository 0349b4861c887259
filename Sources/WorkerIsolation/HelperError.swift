/// The reason why a helper process does not answer.
package enum HelperLoss: Error, Sendable, Hashable {
  /// No helper can be started.
  case notStarted(String)
  /// The process that forks helpers has ended, and its helpers with it.
  case orphaned
  /// The process exited by itself.
  case exited(status: Int32)
  /// A signal ended the process, which was not sent by the worker.
  case signaled(Int32)
  /// The process used more CPU time than its limit.
  case exceededCPUTime
  /// The process needed more memory than its limit.
  case exceededMemory
  /// The process made no progress and was ended.
  case stalled
  /// The process sent a message that the protocol does not allow, and was ended.
  case misbehaved
}

extension HelperLoss: CustomStringConvertible {
  package var description: String {
    switch self {
    case .notStarted(let cause): "it could not be started: \(cause)"
    case .orphaned: "the process that started it has ended"
    case .exited(let status): "it exited with status \(status)"
    case .signaled(let signal): "signal \(signal) ended it"
    case .exceededCPUTime: "it used more CPU time than its limit"
    case .exceededMemory: "it needed more memory than its limit"
    case .stalled: "it made no progress"
    case .misbehaved: "it sent an invalid message"
    }
  }
}
