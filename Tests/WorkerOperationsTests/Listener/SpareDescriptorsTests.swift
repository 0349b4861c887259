import NIOCore
import Testing

@testable import WorkerOperations

@Suite("SpareDescriptors")
struct SpareDescriptorsTests {
  private static let start = NIODeadline.distantPast + .seconds(2)

  /// The descriptors of a process that says how many it uses.
  private final class Process {
    var spare = SpareDescriptors()
    var countedCount = 0

    func remain(after count: Int = 0, now: NIODeadline = start, limit: Int, used: Int?) -> Bool {
      spare.remain(after: count, now: now, limit: limit) {
        countedCount += 1
        return used
      }
    }
  }

  @Test("connections leave the reserve alone")
  func reserve() {
    let process = Process()
    var used = 20, accepted = 0
    while process.remain(after: 1, limit: 100, used: used) {
      used += 1
      accepted += 1
    }
    #expect(accepted > 50)
    #expect(used <= 100 - SpareDescriptors.reserve)
    #expect(process.spare.limit == 100)
    #expect(process.remain(limit: 100, used: used - 10))
  }

  @Test("descriptors are counted rarely while many are left")
  func rarely() {
    let process = Process()
    for second in 0..<1000 {
      #expect(process.remain(after: 1, now: Self.start + .seconds(Int64(second)), limit: 100_000, used: 30))
    }
    #expect(process.countedCount == 1)
  }

  @Test("a new limit, and others that take descriptors while few are left, are noticed")
  func changes() {
    let process = Process()
    #expect(process.remain(limit: 1000, used: 50))
    #expect(!process.remain(limit: 60, used: 50))
    #expect(process.remain(limit: 200, used: 50))
    #expect(process.remain(now: Self.start + .milliseconds(500), limit: 200, used: 190))
    #expect(!process.remain(now: Self.start + .milliseconds(1500), limit: 200, used: 190))
  }

  @Test("where descriptors cannot be counted, connections are accepted")
  func uncountable() {
    let process = Process()
    for _ in 0..<2000 { #expect(process.remain(after: 1, limit: 100, used: nil)) }
  }

  @Test("the process's own descriptors are counted")
  func own() {
    var spare = SpareDescriptors()
    let remain = spare.remain(after: 0)
    #expect(remain)
    #expect(spare.usedCount >= 3 && spare.usedCount < spare.limit)
  }
}
