import NIOCore
import Testing

@testable import WorkerOperations

@Suite("Allowance")
struct AllowanceTests {
  private static let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

  /// Returns how many of `count` attempts are allowed at this number of seconds after the start.
  private func taken(_ count: Int, from allowance: inout Allowance, after seconds: Int64) -> Int {
    (0..<count).count { _ in allowance.take(now: Self.start + .seconds(seconds)) }
  }

  @Test("allows its capacity at once, the same number again over its period, and never more at once")
  func refill() {
    var allowance = Allowance(10, per: .seconds(10), now: Self.start)
    let taken = [0, 0, 3, 3, 100, 100].map { self.taken(15, from: &allowance, after: $0) }
    #expect(taken == [10, 0, 3, 0, 10, 0])
  }

  @Test("regains one per earned token, and never exceeds its capacity")
  func earning() {
    var allowance = Allowance(10, per: .seconds(10), now: Self.start)
    for _ in 0..<5 { allowance.earn() }
    let first = taken(15, from: &allowance, after: 0)
    allowance.earn()
    allowance.earn()
    let second = taken(15, from: &allowance, after: 0)
    #expect(first == 10 && second == 2)
  }
}
