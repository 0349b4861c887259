internal import GRPCCore
internal import GRPCProtobuf

/// The retry policy of an export.
///
/// Source: OTLP specification 1.x, sections "Failures" and "OTLP/gRPC Throttling".
struct OTLPRetry: Sendable {
  var initialDelay = Duration.milliseconds(500)
  var maxDelay = Duration.seconds(5)

  /// Repeats `attempt` until it succeeds, fails permanently, or the timeout has passed.
  ///
  /// - Parameters:
  ///   - timeout: The time limit for all attempts together.
  ///   - attempt: One attempt, called with the remaining time.
  /// - Returns: The result of the successful attempt.
  /// - Throws: The error of the last attempt.
  func run<Result: Sendable>(
    timeout: Duration, _ attempt: (Duration) async throws -> Result
  ) async throws -> Result {
    let deadline = ContinuousClock.now.advanced(by: timeout)
    var count = 0
    while true {
      do {
        return try await attempt(ContinuousClock.now.duration(to: deadline))
      } catch let error as RPCError {
        count += 1
        guard let delay = delay(after: error, attempt: count), ContinuousClock.now.advanced(by: delay) < deadline
        else { throw error }
        try await Task.sleep(for: delay)
      }
    }
  }

  /// Returns the delay after the attempt with this number, counted from 1, or `nil` if the failure is permanent.
  func delay(after error: RPCError, attempt: Int) -> Duration? {
    let asked = Self.askedDelay(error)
    switch error.code {
    case .cancelled, .deadlineExceeded, .aborted, .outOfRange, .unavailable, .dataLoss: break
    case .resourceExhausted where asked != nil: break
    default: return nil
    }
    // Exponential back-off with jitter, so that many workers do not retry at the same moment.
    let doubled = min(maxDelay, initialDelay * (1 << min(attempt - 1, 16)))
    return max(asked ?? .zero, doubled * Double.random(in: 0.5...1))
  }

  /// Returns the delay that the collector requests in `RetryInfo`.
  private static func askedDelay(_ error: RPCError) -> Duration? {
    // Details that cannot be decoded are ignored.
    guard let status = try? error.unpackGoogleRPCStatus() else { return nil }
    return status.details.lazy.compactMap(\.retryInfo?.delay).first
  }
}
