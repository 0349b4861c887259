/// The decision about a call before any of its messages is received.
package struct CallAdmission: Sendable {
  /// A call whose headers have arrived.
  package struct Call: Sendable {
    /// The path of the method, as in `/package.Service/Method`.
    package var path: String
    /// The name of the caller; `nil` if it was not identified.
    package var identity: String?
    /// The connection that the call belongs to, as in `MessageRequest`.
    package var connection: UInt64
    /// The client's address in gRPC's notation.
    package var peer: String
    /// The time at which the client stops waiting; `nil` if it did not say.
    package var deadline: ContinuousClock.Instant?
  }

  /// An answer to a call.
  package enum Answer: Sendable {
    /// The call's messages are received.
    ///
    /// A promise is released when the first one has arrived, when the call ends, or when the client has sent nothing for
    /// a second or two. A call with a promise must send its message at the minimum rate of uploads from the beginning.
    case admitted(until: (any Sendable & AnyObject)?)
    /// The worker is overloaded.
    case refused(_ message: String, retryDelay: Duration?)
  }

  /// Admits every call.
  package static let always = CallAdmission { _ in .admitted(until: nil) }

  /// Decides about a call; called on the event loop of its connection.
  package var admit: @Sendable (Call) -> Answer

  /// Creates an admission.
  package init(admit: @escaping @Sendable (Call) -> Answer) { self.admit = admit }
}
