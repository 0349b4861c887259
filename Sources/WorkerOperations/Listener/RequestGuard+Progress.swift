internal import NIOCore
internal import NIOHTTP2

/// Ends calls whose clients send their messages or read their results too slowly.
extension RequestGuard {
  /// The bytes of a call since the last check.
  struct Progress {
    var receivedByteCount = 0
    /// Bytes of results that have not been sent, because the client does not read them.
    var pendingByteCount = 0
    var sentByteCount = 0
    /// Whether nothing had arrived of an expected message at the last check.
    var isSilent = false
    var upload = TransferLag()
    var download = TransferLag()
  }

  func check(elapsed: Duration) {
    guard state == .running else { return }
    checkExpectation()
    checkUpload(elapsed)
    checkDownload(elapsed)
    progress.receivedByteCount = 0
    progress.sentByteCount = 0
  }

  /// Releases the promise to a client that has sent nothing for a whole interval, although it may send.
  ///
  /// Others are refused for the sake of expected messages, and headers cost their client nothing.
  private func checkExpectation() {
    let isSilent = expectation.isPromised && waitingID == nil && progress.receivedByteCount == 0
    if isSilent, progress.isSilent { expectation = .overdue }
    progress.isSilent = isSilent
  }

  /// Whether the client has sent a part of a message, or has yet to send the only one, and may send the rest.
  private var isUploading: Bool {
    guard clientEnd != .read, waitingID == nil, ready.isEmpty else { return false }
    return expectation.isDue || !(inflater?.isBetweenMessages ?? assembler.isEmpty)
  }

  private func checkUpload(_ elapsed: Duration) {
    let limits = connection.limits.time
    guard let limit = limits.upload, isUploading else { return progress.upload = TransferLag() }
    let seconds = max(1, Int(limits.message.components.seconds))
    let rate = limits.minBytesPerSecond == 0 ? 0 : max(limits.minBytesPerSecond, assembler.messageByteCount / seconds)
    let isLate = progress.upload.add(
      elapsed, byteCount: progress.receivedByteCount, minBytesPerSecond: rate, limit: limit)
    guard isLate, state == .running else { return }
    refuse(
      RequestRefusal(
        code: .deadlineExceeded,
        message: "a message was sent at less than \(max(1, rate)) bytes per second for longer than "
          + "\(limit.components.seconds) seconds, the limit upload_timeout_seconds; send it again"))
  }

  private func checkDownload(_ elapsed: Duration) {
    let limits = connection.limits.time
    guard let limit = limits.download, progress.pendingByteCount > 0 else {
      return progress.download = TransferLag()
    }
    guard
      progress.download.add(
        elapsed, byteCount: progress.sentByteCount, minBytesPerSecond: limits.minBytesPerSecond, limit: limit)
    else { return }
    cancel(reason: "the client reads its results too slowly")
  }

  /// Notes bytes of results that the transport has written to the stream.
  func noteWritten(_ byteCount: Int) { progress.pendingByteCount += byteCount }

  /// Notes bytes of results that were sent on the connection.
  func noteSent(_ byteCount: Int) {
    progress.pendingByteCount -= byteCount
    progress.sentByteCount += byteCount
  }
}
