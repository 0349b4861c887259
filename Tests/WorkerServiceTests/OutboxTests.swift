import GRPCCore
import Synchronization
import Testing

@testable import WorkerService

@Suite("Outbox")
struct OutboxTests {
  @Test("writes what waits together with what follows, in order and no more than eight at once")
  func together() async throws {
    let writer = Recorder()
    let outbox = Outbox(RPCWriter(wrapping: writer))
    try await outbox.send(0, isMoreReady: true)
    try await outbox.send(1, isMoreReady: true)
    #expect(writer.writes.withLock { $0 }.isEmpty)
    try await outbox.send(2, isMoreReady: false)
    try await outbox.send(3, isMoreReady: false)
    for number in 4..<13 { try await outbox.send(number, isMoreReady: true) }
    #expect(writer.writes.withLock { $0 } == [[0, 1, 2], [3], Array(4..<12)])
  }

  private final class Recorder: RPCWriterProtocol {
    let writes = Mutex<[[Int]]>([])

    func write(_ element: Int) async throws { try await write(contentsOf: [element]) }

    func write(contentsOf elements: some Sequence<Int>) async throws {
      let elements = Array(elements)
      writes.withLock { $0.append(elements) }
    }
  }
}
