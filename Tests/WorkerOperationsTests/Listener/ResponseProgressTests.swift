import Testing

@testable import WorkerOperations

@Suite("ResponseProgress")
struct ResponseProgressTests {
  private static func limits(download: Duration? = .seconds(3)) -> TimeLimits {
    var limits = TimeLimits()
    limits.download = download
    limits.minBytesPerSecond = 10
    return limits
  }

  /// Checks once a second, after as many bytes were sent as `sent` says; returns which of the checks end the call.
  private static func checks(
    _ progress: inout ResponseProgress, sent: [Int], limits: TimeLimits = limits()
  ) -> [Bool] {
    sent.map { count in
      progress.noteSent(count)
      return progress.check(elapsed: .seconds(1), limits: limits)
    }
  }

  @Test("a client that reads nothing is too slow at the limit, and only if there is one")
  func silence() {
    var progress = ResponseProgress()
    progress.noteWritten(100)
    var unlimited = progress
    #expect(Self.checks(&progress, sent: [0, 0, 0]) == [false, false, true])
    #expect(!Self.checks(&unlimited, sent: [0, 0, 0, 0], limits: Self.limits(download: nil)).contains(true))
  }

  @Test("a client that reads at the minimum rate, or has read everything, is not too slow")
  func rate() {
    var progress = ResponseProgress()
    progress.noteWritten(1000)
    #expect(!Self.checks(&progress, sent: Array(repeating: 10, count: 99)).contains(true))
    #expect(!Self.checks(&progress, sent: [10] + Array(repeating: 0, count: 20)).contains(true))
  }

  @Test("bytes count once")
  func burst() {
    var progress = ResponseProgress()
    progress.noteWritten(1000)
    #expect(Self.checks(&progress, sent: [10, 0, 0, 0]) == [false, false, false, true])
  }

  @Test("a client that has read everything starts anew")
  func restart() {
    var progress = ResponseProgress()
    progress.noteWritten(10)
    #expect(Self.checks(&progress, sent: [0, 0, 10]) == [false, false, false])
    progress.noteWritten(10)
    #expect(Self.checks(&progress, sent: [0, 0, 0]) == [false, false, true])
  }
}
