internal import Synchronization

/// The address of the gRPC listener, which is known when the worker listens.
package final class WorkerAddress: Sendable {
  private let text = Mutex("")
  /// Whether clients need TLS to connect.
  package let isSecure: Bool

  /// Creates an address that is not known yet.
  package init(isSecure: Bool) { self.isSecure = isSecure }

  /// The address as clients spell it; empty until it is known.
  package var current: String {
    get { text.withLock { $0 } }
    set { text.withLock { $0 = newValue } }
  }
}
