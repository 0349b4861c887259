/// A request for the memory of one message.
package struct MessageRequest: Sendable {
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

  /// Creates a request.
  package init(
    byteCount: Int, connection: UInt64, isContinuation: Bool, bufferedByteCount: Int,
    grant: @escaping @Sendable () -> Void
  ) {
    self.byteCount = byteCount
    self.connection = connection
    self.isContinuation = isContinuation
    self.bufferedByteCount = bufferedByteCount
    self.grant = grant
  }
}

/// The answer to a request for the memory of one message.
package enum MessageAnswer: Sendable, Equatable {
  /// The message is charged.
  case granted
  /// The message waits under this identifier.
  case waiting(UInt64)
  /// Too many messages wait.
  case full
  /// A message may have at most so many bytes.
  case tooLarge(Int)
}
