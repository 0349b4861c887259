internal import GRPCCore
internal import NIOCore
internal import NIOHTTP2

/// Ends calls whose clients send their messages too slowly.
extension MessageReceiver {
  /// The progress of a call's messages since the last check.
  struct Progress {
    var receivedByteCount = 0
    /// Whether nothing had arrived of an expected message at the last check.
    var isSilent = false
    var lag = TransferLag()
  }

  func check(elapsed: Duration) {
    checkExpectation()
    checkLag(elapsed)
    progress.receivedByteCount = 0
  }

  /// Releases the promise to a client that has sent nothing for a whole interval, although it may send.
  ///
  /// Others are refused for the sake of expected messages, and headers cost their client nothing.
  private func checkExpectation() {
    let isSilent = expectation.isPromised && waitingID == nil && progress.receivedByteCount == 0
    if isSilent, progress.isSilent { expectation = .overdue }
    progress.isSilent = isSilent
  }

  /// Whether the client has sent a part of a message, or has yet to send the only one or the end behind it, and may send
  /// the rest.
  private var isUploading: Bool {
    guard clientEnd != .read, waitingID == nil, ready.isEmpty else { return false }
    return expectation.isDue || !isBetweenMessages || isEndDue
  }

  /// Whether nothing but the end of the client's stream may follow, or its only message.
  private var isEndDue: Bool { !isStreaming && clientEnd == .none }

  private func checkLag(_ elapsed: Duration) {
    let limits = connection.limits.time
    guard let limit = limits.upload, isUploading else { return progress.lag = TransferLag() }
    let seconds = max(1, Int(limits.message.components.seconds))
    let rate = limits.minBytesPerSecond == 0 ? 0 : max(limits.minBytesPerSecond, assembler.messageByteCount / seconds)
    let isLate = progress.lag.add(
      elapsed, byteCount: progress.receivedByteCount, minBytesPerSecond: rate, limit: limit)
    guard isLate else { return }
    refuse(
      RequestRefusal(
        code: .deadlineExceeded,
        message: isBetweenMessages && isEndDue
          ? "the client did not end its stream for longer than \(limit.components.seconds) seconds, the limit "
            + "upload_timeout_seconds; end it behind the only message of this method"
          : "a message was sent at less than \(max(1, rate)) bytes per second for longer than "
            + "\(limit.components.seconds) seconds, the limit upload_timeout_seconds; send it again"))
  }
}
