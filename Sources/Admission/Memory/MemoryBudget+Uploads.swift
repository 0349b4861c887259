package import ImagePipeline
internal import Synchronization
package import WorkThreads

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
