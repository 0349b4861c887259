internal import Synchronization

extension MemoryBudget {
  /// The outcome of a request for a message's memory.
  package enum MessageAdmission: Sendable, Equatable {
    /// The message is charged.
    case granted
    /// The message waits under this identifier.
    case waiting(UInt64)
    /// Too many messages wait.
    case full
    /// A message may have at most so many bytes.
    case tooLarge(Int)
  }

  /// The number of bytes of received messages, and of those that wait.
  package var received: Int { state.withLock { $0.messages.byteCount } }
  /// The number of messages whose memory was freed since the process started, however much of them arrived.
  package var endedMessageCount: UInt64 { state.withLock { $0.messages.endedCount } }
  /// The number of bytes that open connections and calls take.
  package var occupied: Int { state.withLock { $0.occupied } }
  /// The number of messages that wait for memory.
  package var waitingMessageCount: Int { state.withLock { $0.messages.waiters.count } }

  /// Charges a message that a client begins to send, or lets it wait for memory.
  ///
  /// - Parameters:
  ///   - byteCount: The size of the message in bytes.
  ///   - connection: The connection that sends it.
  ///   - isContinuation: Whether its call has sent another message before.
  ///   - bufferedByteCount: The number of bytes that may arrive while the message waits.
  ///   - grant: Called on any thread when a waiting message has been charged.
  /// - Returns: Whether the message is charged, waits or is refused.
  package func receive(
    _ byteCount: Int, of connection: UInt64, isContinuation: Bool, buffering bufferedByteCount: Int,
    grant: @escaping @Sendable () -> Void
  ) -> MessageAdmission {
    state.withLock { [waited] state in
      guard byteCount <= state.messages.maxMessageByteCount else {
        return .tooLarge(state.messages.maxMessageByteCount)
      }
      let room = messageRoom(state)
      let began = ContinuousClock.now
      if state.messages.take(byteCount, of: connection, isContinuation: isContinuation, room: room, now: began) {
        return .granted
      }
      let id = state.messages.wait(
        byteCount, of: connection, isContinuation: isContinuation, buffering: bufferedByteCount, now: began
      ) {
        waited(.message, began.duration(to: .now))
        grant()
      }
      return id.map(MessageAdmission.waiting) ?? .full
    }
  }

  /// Charges bytes that a client may send before its next message is charged, if there is room for them.
  package func openWindow(_ byteCount: Int) -> Bool { state.withLock { $0.messages.openWindow(byteCount) } }

  /// Returns bytes that `openWindow` charged.
  package func closeWindow(_ byteCount: Int) {
    state.withLock { $0.messages.closeWindow(byteCount) }
    admitWaiters()
  }

  /// Charges the memory of a connection or a call.
  /// - Returns: `false` if they take a quarter of the limit already.
  package func occupy(_ byteCount: Int) -> Bool {
    state.withLock { state in
      guard state.occupied + byteCount <= limit / 4 else { return false }
      state.occupied += byteCount
      return true
    }
  }

  /// Returns bytes that `occupy` charged.
  package func vacate(_ byteCount: Int) {
    state.withLock { $0.occupied -= byteCount }
    admitWaiters()
  }

  /// Ends the wait of a message.
  /// - Returns: `false` if the message was charged before.
  package func abandonMessage(_ id: UInt64) -> Bool {
    defer { admitWaiters() }
    return state.withLock { $0.messages.abandon(id) }
  }

  /// Returns charged bytes of a connection to the budget.
  ///
  /// - `isContinuation`: as it was for `receive`.
  package func releaseMessage(_ byteCount: Int, of connection: UInt64, isContinuation: Bool) {
    state.withLock { $0.messages.release(byteCount, of: connection, isContinuation: isContinuation) }
    admitWaiters()
  }
}
