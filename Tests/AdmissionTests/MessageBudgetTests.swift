import ImagePipeline
import Synchronization
import Testing
import WorkThreads

@testable import Admission

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

  private func receive(
    _ mib: Int, of connection: UInt64 = 1, _ name: String = "", isContinuation: Bool = false
  ) -> MessageAnswer {
    budget.admit(
      MessageRequest(
        byteCount: mib * Self.mib, connection: connection, isContinuation: isContinuation,
        bufferedByteCount: Self.mib / 4, grant: granted.note(name)))
  }

  private func release(_ mib: Int, of connection: UInt64 = 1, isContinuation: Bool = false) {
    budget.releaseMessage(mib * Self.mib, of: connection, isContinuation: isContinuation)
  }

  private func isWaiting(_ admission: MessageAnswer) -> Bool {
    if case .waiting = admission { true } else { false }
  }

  @Test("leaves a quarter of the room for calls to connections and their first calls")
  func occupation() {
    var claims: [Claim] = []
    for (isFirst, byteCount) in [(false, 48 << 20), (true, 64 << 20)] {
      while let claim = budget.occupy(64 << 10, isFirst: isFirst) { claims.append(claim) }
      #expect(budget.occupied == byteCount)
    }
    claims = []
    #expect(budget.occupied == 0)
  }

  @Test("charges a message from its beginning, and refuses one that can never fit")
  func charge() {
    #expect(receive(64) == .granted && budget.received == 64 << 20)
    #expect(receive(65) == .tooLarge(64 << 20))
    release(64)
    #expect(budget.received == 0)
  }

  @Test("large messages wait in order, and small ones pass them")
  func order() {
    #expect(receive(64) == .granted)
    #expect(isWaiting(receive(30, of: 2, "first")) && isWaiting(receive(10, of: 3, "second")))
    #expect(receive(1, of: 4) == .granted)
    #expect(granted.all.isEmpty)
    release(64)
    #expect(granted.all == ["first", "second"] && budget.waitingMessageCount == 0)
    #expect(budget.received == 41 << 20)
  }

  @Test("the connection that uses the least goes first, and none uses more than half with several messages")
  func fairness() {
    #expect(receive(30) == .granted && isWaiting(receive(20, of: 1, "greedy")))
    #expect(receive(50, of: 2) == .granted)
    #expect(isWaiting(receive(20, of: 1, "greedier")) && isWaiting(receive(20, of: 3, "modest")))
    release(50, of: 2)
    #expect(granted.all == ["modest"])
    release(30)
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

  @Test("uploads that have reserved all memory receive their next messages")
  func continuation() async throws {
    let uploads = try await budget.reserve(248 << 20, cancellation: Cancellation())
    // What these buffer takes the room that is left.
    for connection in UInt64(10)..<90 { #expect(isWaiting(receive(40, of: connection))) }
    #expect(isWaiting(receive(1, of: 5)))
    #expect(receive(4, of: 1, isContinuation: true) == .granted)
    #expect(receive(4, of: 2, isContinuation: true) == .granted)
    #expect(isWaiting(receive(4, of: 3, "next", isContinuation: true)))
    release(4, of: 2, isContinuation: true)
    #expect(granted.all == ["next"])
    release(4, of: 1, isContinuation: true)
    release(4, of: 3, isContinuation: true)
    #expect(isWaiting(receive(9, of: 1, isContinuation: true)))
    end(uploads)
  }

  @Test("messages that found room leave the reserve to those that find none")
  func reserve() async throws {
    for connection in UInt64(1)...2 { #expect(receive(4, of: connection, isContinuation: true) == .granted) }
    let uploads = try await budget.reserve(240 << 20, cancellation: Cancellation())
    for connection in UInt64(3)...4 { #expect(receive(4, of: connection, isContinuation: true) == .granted) }
    #expect(isWaiting(receive(4, of: 5, "next", isContinuation: true)))
    #expect(isWaiting(receive(4, of: 6, "last", isContinuation: true)))
    release(4, of: 1, isContinuation: true)
    #expect(granted.all == ["next"])
    // With room again, the reserve is left alone.
    end(uploads)
    #expect(granted.all == ["next", "last"])
    for connection in UInt64(2)...5 { release(4, of: connection, isContinuation: true) }
    let others = try await budget.reserve(244 << 20, cancellation: Cancellation())
    for connection in UInt64(1)...2 { #expect(receive(4, of: connection, isContinuation: true) == .granted) }
    #expect(isWaiting(receive(4, of: 3, isContinuation: true)))
    end(others)
  }

  @Test("files that are buffered before their header leave room for messages")
  func buffered() throws {
    var files = Hold(budget: budget)
    try files.grow(to: 128 << 20)
    // The message is received, and then its file is refused.
    #expect(receive(4, isContinuation: true) == .granted)
    #expect(throws: PipelineError.self) { try files.grow(to: 129 << 20) }
    end(files)
  }

  private func end(_ hold: consuming Hold) {}

  @Test("windows of streams may use half of what may wait")
  func windows() {
    var window = budget.openWindow(12 << 20)
    #expect(window != nil && budget.openWindow(1) == nil)
    window = nil
    #expect(budget.endedMessageCount == 1 && budget.received == 0 && budget.openWindow(1) != nil)
  }

  private func end(_ reservation: consuming Reservation) {}
}
