import NIOCore
import Testing

@testable import WorkerOperations

@Suite("CallTimeout")
struct CallTimeoutTests {
  @Test(
    "reads one to eight digits and a unit",
    arguments: [
      ("1n", 1, "1n"), ("0S", 0, "0S"), ("00000007u", 7000, "7u"), ("9999999m", 9_999_999_000_000, "9999999m"),
      ("99999999n", 99_999_999, "100000u"), ("99999999M", 5_999_999_940_000_000_000, "1666667H"),
      ("99999999H", UInt64.max, "9999999H"),
    ])
  func valid(value: String, nanoseconds: UInt64, readable: String) throws {
    let timeout = try #require(CallTimeout(value))
    #expect(timeout.nanoseconds == nanoseconds && timeout.readableValue == readable)
  }

  @Test("a deadline counts as passed slightly early, because clients round")
  func deadline() throws {
    let now = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    let deadline = CallDeadline(try #require(CallTimeout("10S")), from: now)
    #expect(!deadline.hasPassed(at: now + .milliseconds(9700)) && deadline.hasPassed(at: now + .milliseconds(9900)))
    #expect(CallDeadline(value: deadline.value) == deadline)
    #expect(!CallDeadline(try #require(CallTimeout("99999999H")), from: now).hasPassed(at: .distantFuture - .hours(1)))
    for value in ["", "1", "-1 2", "1 2 3", "a b"] { #expect(CallDeadline(value: value) == nil) }
  }
}
