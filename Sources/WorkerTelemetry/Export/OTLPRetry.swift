internal import GRPCCore
internal import GRPCProtobuf

/// When an export is tried again.
///
/// Source: OTLP specification 1.x, sections "Failures" and "OTLP/gRPC Throttling".
struct OTLPRetry: Sendable {
  var initialDelay = Duration.milliseconds(500)
  var maxDelay = Duration.seconds(5)

  /// Tries until it succeeds, fails for good, or the time is over.
  /// - `timeout`: for all attempts together.
  /// - `attempt`: given the time that is left.
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

  /// How long to wait after the attempt of this number, from 1, or `nil` when the failure is for good.
  func delay(after error: RPCError, attempt: Int) -> Duration? {
    let asked = Self.askedDelay(error)
    switch error.code {
    case .cancelled, .deadlineExceeded, .aborted, .outOfRange, .unavailable, .dataLoss: break
    case .resourceExhausted where asked != nil: break
    default: return nil
    }
    // Doubling, spread so that many workers do not come back at the same moment.
    let doubled = min(maxDelay, initialDelay * (1 << min(attempt - 1, 16)))
    return max(asked ?? .zero, doubled * Double.random(in: 0.5...1))
  }

  /// What the collector asks for in `RetryInfo`.
  private static func askedDelay(_ error: RPCError) -> Duration? {
    // Details that can't be read are as good as none.
    guard let status = try? error.unpackGoogleRPCStatus() else { return nil }
    return status.details.lazy.compactMap(\.retryInfo?.delay).first
  }
}
