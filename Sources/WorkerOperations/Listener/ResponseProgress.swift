/// How fast a client reads the results of a call.
struct ResponseProgress {
  /// Bytes of results that have not been sent, because the client does not read them.
  private var pendingByteCount = 0
  /// Bytes of results that were sent since the last check.
  private var sentByteCount = 0
  private var lag = TransferLag()

  /// Notes bytes of results that the transport has written to the stream.
  mutating func noteWritten(_ byteCount: Int) { pendingByteCount += byteCount }

  /// Notes bytes of results that were sent on the connection.
  mutating func noteSent(_ byteCount: Int) {
    pendingByteCount -= byteCount
    sentByteCount += byteCount
  }

  /// Returns whether the client has read too slowly for too long, `elapsed` after the last check.
  mutating func check(elapsed: Duration, limits: TimeLimits) -> Bool {
    defer { sentByteCount = 0 }
    guard let limit = limits.download, pendingByteCount > 0 else {
      lag = TransferLag()
      return false
    }
    return lag.add(
      elapsed, byteCount: sentByteCount, minBytesPerSecond: limits.minBytesPerSecond, limit: limit)
  }
}
