package import WorkThreads

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
  /// Charges bytes that a client may send before its next message is charged; returns `nil` if there is no room.
  func openWindow(_ byteCount: Int) -> Claim?
  /// Charges the memory of a connection or a call; returns `nil` if there are too many of them.
  func occupy(_ byteCount: Int, isFirst: Bool) -> Claim?
  /// Charges decompressed bytes of a message; returns `false` if there is no room for them.
  func holdNow(_ byteCount: Int) -> Bool
  /// Returns bytes that `holdNow` charged.
  func endHold(_ byteCount: Int)
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
  func openWindow(_ byteCount: Int) -> Claim? { Claim {} }
  func occupy(_ byteCount: Int, isFirst: Bool) -> Claim? { Claim {} }
}
