package import ServiceContextModule

/// The facts about a call that interceptors find, for its handler, its span and its line in the log.
package struct CallContext: Sendable {
  /// The time at which the client stops waiting; `nil` if it set no timeout.
  package var deadline: ContinuousClock.Instant?
  /// The name of the caller, as the `Authenticator` found it; `nil` if callers are not identified.
  package var callerName: String?
  /// The call in the listener; `nil` if objects cannot be kept until its stream is closed.
  package var record: CallRecord?
  /// The work of image threads for the call; `nil` if it is not reported.
  package var cost: CallCost?
}

extension ServiceContext {
  private enum CallKey: ServiceContextKey {
    typealias Value = CallContext
  }

  /// The current call.
  package internal(set) var call: CallContext {
    get { self[CallKey.self] ?? CallContext() }
    set { self[CallKey.self] = newValue }
  }
}
