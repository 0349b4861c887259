/// The worker's memory for messages, charged before their bytes are read; called on any thread.
package protocol MessageMemory: Sendable {
  /// Charges a message, or lets it wait.
  func admit(_ request: MessageRequest) -> MessageAnswer
  /// Ends the wait of a message; returns `false` if it was charged before.
  func abandonMessage(_ id: UInt64) -> Bool
  /// Returns charged bytes of a connection; `isContinuation` is that of their request.
  func releaseMessage(_ byteCount: Int, of connection: UInt64, isContinuation: Bool)
  /// Notes bytes that have arrived of the first message of a call, which was charged, and whether they are its last.
  func noteReceived(_ byteCount: Int, of connection: UInt64, isLast: Bool)
  /// Notes that the last `byteCount` bytes of the first message of a call, which was charged, will not arrive.
  func noteAbandoned(_ byteCount: Int, of connection: UInt64)
  /// Charges bytes that a client may send before its next message is charged; returns `false` if there is no room.
  func openWindow(_ byteCount: Int) -> Bool
  /// Returns bytes that `openWindow` charged.
  func closeWindow(_ byteCount: Int)
  /// Charges the memory of a connection or a call; returns `false` if there are too many of them.
  func occupy(_ byteCount: Int) -> Bool
  /// Returns bytes that `occupy` charged.
  func vacate(_ byteCount: Int)
  /// Charges decompressed bytes of a message; returns `false` if there is no room for them.
  func holdNow(_ byteCount: Int) -> Bool
  /// Returns bytes that `holdNow` charged.
  func endHold(_ byteCount: Int)
}

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

extension MessageMemory {
  func noteReceived(_ byteCount: Int, of connection: UInt64, isLast: Bool) {}
  func noteAbandoned(_ byteCount: Int, of connection: UInt64) {}
  func holdNow(_ byteCount: Int) -> Bool { true }
  func endHold(_ byteCount: Int) {}
}

/// Memory without a limit.
struct UnlimitedMemory: MessageMemory {
  func admit(_ request: MessageRequest) -> MessageAnswer { .granted }
  func abandonMessage(_ id: UInt64) -> Bool { true }
  func releaseMessage(_ byteCount: Int, of connection: UInt64, isContinuation: Bool) {}
  func openWindow(_ byteCount: Int) -> Bool { true }
  func closeWindow(_ byteCount: Int) {}
  func occupy(_ byteCount: Int) -> Bool { true }
  func vacate(_ byteCount: Int) {}
}
