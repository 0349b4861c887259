import Synchronization
import Testing

@testable import ImagePipeline

@Suite("MemoryBudget, messages")
struct MessageBudgetTests {
  private static let mib = 1 << 20
  /// Of 256 MiB, messages may use 96, one of them 64, large ones 88, and those that wait 24.
  private let budget = MemoryBudget(limit: 256 << 20, maxWaiting: 8, receivesMessages: true)
  private let granted = Grants()

  private final class Grants: Sendable {
    let names = Mutex<[String]>([])
    func note(_ name: String) -> @Sendable () -> Void { { self.names.withLock { $0.append(name) } } }
    var all: [String] { names.withLock { $0 } }
  }

  private func receive(_ mib: Int, of connection: UInt64 = 1, _ name: String = "") -> MemoryBudget.MessageAdmission {
    budget.receive(mib * Self.mib, of: connection, buffering: Self.mib / 4, grant: granted.note(name))
  }

  private func isWaiting(_ admission: MemoryBudget.MessageAdmission) -> Bool {
    if case .waiting = admission { true } else { false }
  }

  @Test("charges a message from its beginning, and refuses one that can never fit")
  func charge() {
    #expect(receive(64) == .granted && budget.received == 64 << 20)
    #expect(receive(65) == .tooLarge(64 << 20))
    budget.releaseMessage(64 << 20, of: 1)
    #expect(budget.received == 0)
  }

  @Test("large messages wait in order, and small ones pass them")
  func order() {
    #expect(receive(64) == .granted)
    #expect(isWaiting(receive(30, of: 2, "first")) && isWaiting(receive(10, of: 3, "second")))
    #expect(receive(1, of: 4) == .granted)
    #expect(granted.all.isEmpty)
    budget.releaseMessage(64 << 20, of: 1)
    #expect(granted.all == ["first", "second"] && budget.waitingMessageCount == 0)
    #expect(budget.received == 41 << 20)
  }

  @Test("the connection that uses the least goes first, and none uses more than half with several messages")
  func fairness() {
    #expect(receive(30) == .granted && isWaiting(receive(20, of: 1, "greedy")))
    #expect(receive(50, of: 2) == .granted)
    #expect(isWaiting(receive(20, of: 1, "greedier")) && isWaiting(receive(20, of: 3, "modest")))
    budget.releaseMessage(50 << 20, of: 2)
    #expect(granted.all == ["modest"])
    budget.releaseMessage(30 << 20, of: 1)
    #expect(granted.all == ["modest", "greedy", "greedier"])
  }

  @Test("too many waiting messages are refused, and those that leave make room")
  func full() {
    #expect(receive(64) == .granted)
    let waiting = (0..<96).map { _ in receive(40) }
    #expect(waiting.allSatisfy(isWaiting) && receive(40) == .full)
    guard case .waiting(let id) = waiting[7] else { return }
    #expect(budget.abandonMessage(id) && !budget.abandonMessage(id))
    #expect(isWaiting(receive(40)) && receive(40) == .full)
  }

  @Test("messages and images share the limit, and the next of each gets its room")
  func images() async throws {
    let images = try await budget.reserve(200 << 20, cancellation: Cancellation())
    #expect(isWaiting(receive(50, of: 1, "message")))
    // Small images would otherwise take the room forever.
    #expect(throws: PipelineError.self) { end(try budget.reserveNow(20 << 20)) }
    #expect(receive(1, of: 2) == .granted)
    end(images)
    #expect(granted.all == ["message"])
    end(try budget.reserveNow(150 << 20))
    var upload = Hold(budget: budget)
    #expect(throws: PipelineError.self) { try upload.grow(to: 90 << 20) }
    try upload.grow(to: 70 << 20)
    #expect(isWaiting(receive(20, of: 3)))
  }

  @Test("windows of streams may use half of what may wait")
  func windows() {
    #expect(budget.openWindow(12 << 20) && !budget.openWindow(1))
    budget.closeWindow(12 << 20)
    #expect(budget.received == 0 && budget.openWindow(1))
  }

  private func end(_ reservation: consuming Reservation) {}
}
