import NIOCore
import Synchronization
import Testing

@testable import WorkerOperations

@Suite("FirstWindow", .timeLimit(.minutes(15)))
struct FirstWindowTests {
  /// A message for the health service with a field that it does not know.
  private static let message: [UInt8] = {
    let field: [UInt8] = [0x7a, 0x80, 0x80, 0x40] + [UInt8](repeating: 1, count: 1 << 20)
    return [0] + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: field.count >> $0) } + field
  }()

  private func limits(_ account: MessageAccount, refusing numbers: Set<Int> = []) -> ConnectionLimits {
    var limits = account.limits
    let calls = Calls()
    limits.calls = CallAdmission { _ in
      let number = calls.count.withLock { count in
        count += 1
        return count
      }
      return numbers.contains(number) ? .refused("no time", retryDelay: nil) : .admitted(until: nil)
    }
    return limits
  }

  private final class Calls: Sendable { let count = Mutex(0) }

  /// Sends the rest of a message as the window of the connection allows.
  private func finish(_ connection: RawConnection, _ stream: UInt32, from start: Int) throws {
    var rest = Self.message[start...]
    while !rest.isEmpty {
      try connection.send(rest.prefix(30_000), on: stream, ends: rest.count <= 30_000)
      rest = rest.dropFirst(30_000)
      try connection.settle()
    }
    #expect(try connection.answer(stream).status == 0)
  }

  @Test("a connection of which a call was refused may send little with further ones, and all of those that are served")
  func refusal() async throws {
    let account = MessageAccount()
    try await serveHealth(limits(account, refusing: [2])) { server in
      let connection = try RawConnection(port: server.port)
      #expect(connection.firstWindow == 64 << 10)
      let before = try connection.open(message: Array(Self.message.prefix(5000)), ends: false)
      let refused = try connection.open(message: Array(Self.message.prefix(60_000)), ends: false)
      #expect(try connection.answer(refused).status == 8)
      try connection.wait { connection.firstWindow == 1024 }
      // The acknowledgement of the settings has arrived with the ping.
      try connection.settle()
      let after = try connection.open(message: Array(Self.message.prefix(1000)), ends: false)
      try connection.settle(while: account.now.requests.count < 2)
      for (index, stream, sent, window) in [(0, before, 5000, 1024), (1, after, 1000, 1024)] {
        account.grant(index)
        try connection.wait { connection.streamCredit[stream] != nil }
        let credit = try #require(connection.streamCredit[stream])
        // With what it may send of a stream that begins, the rest of the message and as much again.
        #expect(window + credit == Self.message.count + window)
        try finish(connection, stream, from: sent)
      }
      #expect(connection.goAways.isEmpty)
    }
    #expect(account.now.receivedByteCount == 2 * Self.message.count && account.now.receivedCount == 2)
    #expect(account.now.lostByteCounts.isEmpty)
  }

  @Test("a connection of which a message waits may send little with further calls")
  func wait() async throws {
    let account = MessageAccount()
    try await serveHealth(limits(account)) { server in
      let connection = try RawConnection(port: server.port)
      #expect(connection.firstWindow == 64 << 10)
      _ = try connection.open(message: Array(Self.message.prefix(5000)), ends: false)
      try connection.wait { connection.firstWindow == 1024 }
    }
  }

  @Test("reports what does not arrive of a message")
  func abandonment() async throws {
    let account = MessageAccount()
    try await serveHealth(limits(account)) { server in
      let connection = try RawConnection(port: server.port)
      let stream = try connection.open(message: Array(Self.message.prefix(5000)), ends: false)
      try connection.settle(while: account.now.requests.count < 1)
      account.grant(0)
      try connection.wait { connection.streamCredit[stream] != nil }
      try connection.reset(stream)
      try connection.settle(while: account.now.lostByteCounts.isEmpty)
    }
    #expect(account.now.receivedByteCount == 5000 && account.now.lostByteCounts == [Self.message.count - 5000])
  }

  @Test("the window is as usual when no call was refused for a while; acknowledgements come in order")
  func calm() {
    var window = FirstWindow(64 << 10)
    let now = NIODeadline.now()
    window.noteSettingsOfHandler()
    #expect(window.check(now) == nil && window.noteLoad(now) == 1024 && window.noteLoad(now) == nil)
    window.noteSettingsOfHandler()
    #expect(window.acknowledge() == nil && window.byteCount == 64 << 10)
    #expect(window.acknowledge() == 1024 - (64 << 10) && window.byteCount == 1024)
    #expect(window.acknowledge() == nil)
    #expect(window.noteLoad(now + .seconds(5)) == nil && window.check(now + .seconds(14)) == nil)
    #expect(window.check(now + .seconds(15)) == 64 << 10 && window.check(now + .seconds(16)) == nil)
    #expect(window.noteLoad(now + .seconds(17)) == 1024)
    #expect(window.acknowledge() == (64 << 10) - 1024 && window.acknowledge() == 1024 - (64 << 10))
    // A client acknowledges more than it was sent.
    #expect(window.acknowledge() == nil && window.byteCount == 1024)
  }
}
