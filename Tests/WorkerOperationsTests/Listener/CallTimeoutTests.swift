import NIOCore
import Testing

@testable import WorkerOperations

@Suite("CallTimeout")
struct CallTimeoutTests {
  @Test(
    "reads one to eight digits and a unit",
    arguments: [
      ("1n", 1), ("0S", 0), ("00000007u", 7000), ("9999999m", 9_999_999_000_000), ("99999999n", 99_999_999),
      ("99999999M", 5_999_999_940_000_000_000), ("99999999H", UInt64.max),
    ])
  func valid(value: String, nanoseconds: UInt64) throws {
    #expect(try #require(CallTimeout(value)).nanoseconds == nanoseconds)
  }

  @Test("a deadline counts as passed slightly early, because clients round")
  func deadline() throws {
    let now = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    let deadline = CallDeadline(try #require(CallTimeout("10S")), from: now)
    #expect(!deadline.hasPassed(at: now + .milliseconds(9700)) && deadline.hasPassed(at: now + .milliseconds(9900)))
    #expect(deadline.end == now + .seconds(10))
    let distant = CallDeadline(try #require(CallTimeout("99999999H")), from: now)
    #expect(!distant.hasPassed(at: .distantFuture - .hours(1)) && distant.end == nil)
  }
}
