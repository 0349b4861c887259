import Admission
import Foundation
import ImagePipeline
import Synchronization
import TestSupport
import Testing
import WorkThreads

@Suite("Wait", .timeLimit(.minutes(15)))
struct WaitTests {
  private final class Waits: Sendable {
    private let list = Mutex<[Wait]>([])
    var all: [Wait] { list.withLock { $0 } }
    @Sendable func note(_ wait: Wait, _ duration: Duration) {
      #expect(duration > .zero)
      list.withLock { $0.append(wait) }
    }
  }

  private let waits = Waits()

  @Test("the article lists the waits in their order")
  func article() throws {
    let article = try document("Sources/Admission/Documentation.docc/Admission.md")
    let rows = article.matches(of: /\n\| `(\w+)` \|(?:[^|\n]+\|){4}/).map { String($0.1) }
    #expect(rows == Wait.allCases.map(\.name))
  }

  @Test("the memory budget reports waits of images and messages, and only these")
  func memory() async throws {
    let budget = MemoryBudget(limit: 1024, maxWaiting: 4, waited: waits.note)
    let first = try await budget.reserve(1024, cancellation: Cancellation())
    #expect(waits.all.isEmpty)
    async let second = budget.reserve(8, cancellation: Cancellation()).byteCount
    try await waitUntil("an image waits") { budget.waitingCount == 1 }
    let answer = budget.admit(
      MessageRequest(byteCount: 64, connection: 1, isContinuation: false, bufferedByteCount: 0) {})
    #expect(budget.waitingMessageCount == 1 && answer != .granted)
    _ = consume first
    #expect(try await second == 8)
    try await waitUntil("both have waited") { Set(waits.all) == [.memory, .message] && waits.all.count == 2 }
  }

  @Test("the thread queue reports an image that has waited")
  func thread() async throws {
    let memory = MemoryBudget(limit: 1024, maxWaiting: 4)
    let queue = ThreadQueue(
      executor: ImageExecutor(threadCount: 1), express: ImageExecutor(threadCount: 1), memory: memory, maxWait: nil,
      waited: waits.note)
    let (caller, cost) = (ImageCaller(connection: "a"), queue.costs.estimate(of: nil, [], for: ""))
    _ = try await queue.enter(caller, cost: cost, cancellation: Cancellation())
    #expect(waits.all.isEmpty)
    async let second = queue.enter(caller, cost: cost, cancellation: Cancellation())
    try await waitUntil("it waits") { queue.waitingCount == 2 }
    queue.begin()
    _ = try await second
    #expect(waits.all == [.thread])
  }
}
