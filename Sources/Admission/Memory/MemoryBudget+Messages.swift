package import ImagePipeline
internal import Synchronization
package import WorkThreads

extension MemoryBudget {
  /// The number of bytes of received messages, and of those that wait.
  package var received: Int { state.withLock { $0.messages.byteCount } }
  /// The number of messages whose memory was freed since the process started, however much of them arrived.
  package var endedMessageCount: UInt64 { state.withLock { $0.messages.endedCount } }
  /// The number of bytes that open connections and calls take.
  package var occupied: Int { state.withLock { $0.occupied } }
  /// The number of messages that wait for memory.
  package var waitingMessageCount: Int { state.withLock { $0.messages.waiters.count } }

  /// Charges a message that a client begins to send, or lets it wait for memory.
  /// - Returns: Whether the message is charged, waits or is refused.
  package func admit(_ request: MessageRequest) -> MessageAnswer {
    state.withLock { [waited] state in
      guard request.byteCount <= state.messages.maxMessageByteCount else {
        return .tooLarge(state.messages.maxMessageByteCount)
      }
      let room = messageRoom(state)
      let began = ContinuousClock.now
      if state.messages.take(request, room: room, now: began) { return .granted }
      var waiting = request
      waiting.grant = {
        waited(.message, began.duration(to: .now))
        request.grant()
      }
      return state.messages.wait(waiting, now: began).map(MessageAnswer.waiting) ?? .full
    }
  }

  /// Charges bytes that a client may send before its next message is charged, if there is room for them.
  package func openWindow(_ byteCount: Int) -> Claim? {
    guard state.withLock({ $0.messages.openWindow(byteCount) }) else { return nil }
    return Claim { [self] in
      state.withLock { $0.messages.closeWindow(byteCount) }
      admitWaiters()
    }
  }

  /// Charges the memory of a connection or a call.
  ///
  /// Further calls of a connection leave a quarter of the room to first ones and to connections, so that a few clients with
  /// many calls keep nobody else from calling.
  /// - `isFirst`: whether it is a connection, or its only call.
  /// - Returns: `nil` if they take a quarter of the limit already.
  package func occupy(_ byteCount: Int, isFirst: Bool) -> Claim? {
    let hasRoom = state.withLock { state in
      guard state.occupied + byteCount <= (isFirst ? limit / 4 : limit / 16 * 3) else { return false }
      state.occupied += byteCount
      return true
    }
    guard hasRoom else { return nil }
    return Claim { [self] in
      state.withLock { $0.occupied -= byteCount }
      admitWaiters()
    }
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

/// The order in which messages are received; see `UploadLink`.
extension MemoryBudget {
  /// Decides whether the message of a call can be received before its deadline.
  ///
  /// - Parameters:
  ///   - connection: The connection of the call.
  ///   - deadline: The time at which the client stops waiting; `nil` if it did not say.
  /// - Returns: A promise to receive it; release it when the message has arrived.
  /// - Throws: `overloaded` if the uploads before it take too long.
  package func expectUpload(
    of connection: UInt64, deadline: ContinuousClock.Instant?
  ) throws(PipelineError) -> Claim {
    try state.withLock { state throws(PipelineError) in
      let now = ContinuousClock.now
      let left = deadline.map { now.duration(to: $0) }
      let limit = left.map { $0 * ThreadQueue.usableShare }
      guard let time = state.messages.link.promise(connection, within: limit, now), let left else { return }
      throw PipelineError(
        .overloaded,
        "the image would arrive in about \(time.roundedSeconds) s, because uploads share the network, and its deadline "
          + "is in \(left.roundedSeconds) s; set a longer one or try again later",
        retryDelay: time)
    }
    return Claim { [self] in state.withLock { $0.messages.link.release(connection) } }
  }

  /// Notes bytes that have arrived of the first message of a call, and whether they are its last.
  package func noteReceived(_ byteCount: Int, of connection: UInt64, isLast: Bool) {
    let hasRoom = state.withLock { state in
      state.messages.link.receive(byteCount, of: connection, isLast: isLast, .now)
      return state.messages.link.takeRoomMade()
    }
    if hasRoom { admitWaiters() }
  }

  /// Notes that the last `byteCount` bytes of the first message of a call will not arrive, although they may be sent.
  package func noteAbandoned(_ byteCount: Int, of connection: UInt64) {
    state.withLock { $0.messages.link.abandon(byteCount, of: connection, wasOpen: true) }
    admitWaiters()
  }
}
