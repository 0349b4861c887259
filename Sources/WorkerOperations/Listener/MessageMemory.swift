/// The worker's memory for messages, charged before their bytes are read.
package struct MessageMemory: Sendable {
  /// A request for the memory of one message.
  package struct Request: Sendable {
    /// The size of the message in bytes.
    package var byteCount: Int
    /// The connection that sends it.
    package var connection: UInt64
    /// Whether its call has sent another message before.
    package var isContinuation: Bool
    /// The number of bytes that may arrive while the message waits.
    package var bufferedByteCount: Int
    /// Called on any thread when a waiting message has been charged.
    package var grant: @Sendable () -> Void
  }

  /// The answer to a request.
  package enum Admission: Sendable, Equatable {
    /// The message is charged.
    case granted
    /// The message waits under this identifier.
    case waiting(UInt64)
    /// Too many messages wait.
    case full
    /// A message may have at most so many bytes.
    case tooLarge(Int)
  }

  /// Memory without a limit.
  package static let unlimited = MessageMemory(
    admit: { _ in .granted }, abandon: { _ in true }, release: { _, _, _ in }, openWindow: { _ in true },
    closeWindow: { _ in }, occupy: { _ in true }, vacate: { _ in })

  /// Charges a message, or lets it wait.
  package var admit: @Sendable (Request) -> Admission
  /// Ends the wait of a message; returns `false` if it was charged before.
  package var abandon: @Sendable (_ id: UInt64) -> Bool
  /// Returns charged bytes of a connection; `isContinuation` is that of their request.
  package var release: @Sendable (_ byteCount: Int, _ connection: UInt64, _ isContinuation: Bool) -> Void
  /// Charges bytes that a client may send before its next message is charged; returns `false` if there is no room.
  package var openWindow: @Sendable (_ byteCount: Int) -> Bool
  /// Returns bytes that `openWindow` charged.
  package var closeWindow: @Sendable (_ byteCount: Int) -> Void
  /// Charges the memory of a connection or a call; returns `false` if there are too many of them.
  package var occupy: @Sendable (_ byteCount: Int) -> Bool
  /// Returns bytes that `occupy` charged.
  package var vacate: @Sendable (_ byteCount: Int) -> Void

  /// Creates an account from its operations, which may be called from any thread.
  package init(
    admit: @escaping @Sendable (Request) -> Admission, abandon: @escaping @Sendable (UInt64) -> Bool,
    release: @escaping @Sendable (Int, UInt64, Bool) -> Void, openWindow: @escaping @Sendable (Int) -> Bool,
    closeWindow: @escaping @Sendable (Int) -> Void, occupy: @escaping @Sendable (Int) -> Bool,
    vacate: @escaping @Sendable (Int) -> Void
  ) {
    self.admit = admit
    self.abandon = abandon
    self.release = release
    self.openWindow = openWindow
    self.closeWindow = closeWindow
    self.occupy = occupy
    self.vacate = vacate
  }
}

/// Charged bytes; they are returned when the object is destroyed.
final class MessageCharge: Sendable {
  private let release: @Sendable () -> Void

  init(release: @escaping @Sendable () -> Void) { self.release = release }

  deinit { release() }
}
