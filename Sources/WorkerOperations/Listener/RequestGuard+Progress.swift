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
    var upload = TransferLag()
    var download = TransferLag()
  }

  func check(elapsed: Duration) {
    guard state == .running else { return }
    checkUpload(elapsed)
    checkDownload(elapsed)
    progress.receivedByteCount = 0
    progress.sentByteCount = 0
  }

  /// Whether the client has sent a part of a message, and may send the rest.
  private var isUploading: Bool {
    guard !hasClientEnded, waitingID == nil, ready.isEmpty else { return false }
    return !(inflater?.isBetweenMessages ?? assembler.isEmpty)
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
