import NIOCore
import Synchronization
import Testing
import WorkThreads

@testable import WorkerOperations

/// Tests how the listener reads large messages, with an account whose answers the test gives.
@Suite("Messages of a connection", .timeLimit(.minutes(15)))
struct MessageFlowTests {
  /// Returns a message for the health service that has a field of `byteCount` bytes, which it does not know.
  private static func message(_ byteCount: Int) -> [UInt8] {
    var field: [UInt8] = [0x7a]
    var rest = byteCount
    while rest >= 128 {
      field.append(UInt8(rest & 127) | 128)
      rest >>= 7
    }
    field.append(UInt8(rest))
    field += [UInt8](repeating: 1, count: byteCount)
    return [0] + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: field.count >> $0) } + field
  }

  /// The calls that a listener has asked about, and the promises that it has released.
  private final class Calls: Sendable {
    final class Promise: Sendable {
      private let calls: Calls

      init(_ calls: Calls) { self.calls = calls }

      deinit { calls.released.withLock { $0 += 1 } }
    }

    let asked = Mutex<[CallAdmission.Call]>([])
    let released = Mutex(0)

    var releasedCount: Int { released.withLock { $0 } }

    func note(_ call: CallAdmission.Call) { asked.withLock { $0.append(call) } }
  }

  @Test("a call without a chance is refused before its message is charged, with the time after which to try again")
  func refusal() async throws {
    let (account, calls) = (MessageAccount(), Calls())
    var limits = account.limits
    limits.calls = CallAdmission { call in
      calls.note(call)
      return .refused("no time; try again later", retryDelay: .milliseconds(2500))
    }
    try await serveHealth(limits) { server in
      let connection = try RawConnection(port: server.port)
      let headers = RawConnection.okRequest + [("image-worker-identity", "another")]
      let stream = try connection.open(headers, message: Array(Self.message(1 << 20).prefix(60_000)), ends: false)
      let answer = try connection.answer(stream)
      #expect(answer.status == 8)
      #expect(answer.headers["grpc-message"] == "no time; try again later")
    }
    let asked = calls.asked.withLock { $0 }
    #expect(asked.map(\.path) == ["/grpc.health.v1.Health/Check"])
    #expect(asked.first?.peer.hasPrefix("ipv4:127.0.0.1:") == true)
    // This listener authenticates nobody, so that the header is the client's own.
    #expect(asked.first?.identity == nil)
    #expect(account.now.requests.count == 0)
  }

  @Test("the promise to a call is released when its message has arrived, and when it ends before")
  func promise() async throws {
    let (account, calls) = (MessageAccount(), Calls())
    account.answer(.granted)
    var limits = account.limits
    limits.calls = CallAdmission { _ in .admitted(until: Calls.Promise(calls)) }
    let message = Self.message(20_000)
    try await serveHealth(limits) { server in
      let connection = try RawConnection(port: server.port)
      let stream = try connection.open(message: Array(message.prefix(5_000)), ends: false)
      try connection.settle()
      #expect(calls.releasedCount == 0)
      try connection.send(message[5_000...], on: stream)
      try connection.settle(while: calls.releasedCount == 0)
      let other = try connection.open(message: Array(message.prefix(5_000)), ends: false)
      try connection.settle()
      #expect(calls.releasedCount == 1)
      try connection.send(.reset, stream: other, [0, 0, 0, 8])
      try connection.settle(while: calls.releasedCount == 1)
    }
  }

  @Test("a client that sends headers and no message loses its promise, and then its call", arguments: [false, true])
  func silence(isLimited: Bool) async throws {
    let (account, calls) = (MessageAccount(), Calls())
    var limits = account.limits
    limits.calls = CallAdmission { _ in .admitted(until: Calls.Promise(calls)) }
    limits.time.checkInterval = .milliseconds(100)
    limits.time.upload = isLimited ? .milliseconds(300) : nil
    try await serveHealth(limits) { server in
      let connection = try RawConnection(port: server.port)
      let waiting = try connection.open(message: Array(Self.message(20_000).prefix(5_000)), ends: false)
      let silent = try connection.open(message: nil, ends: false)
      try connection.settle(while: calls.releasedCount == 0)
      if isLimited {
        let answer = try connection.answer(silent)
        #expect(answer.status == 4 && answer.headers["grpc-message"]?.contains("upload_timeout_seconds") == true)
      } else {
        #expect(connection.answers[silent] == nil)
      }
      // A message that waits for memory is not its client's fault.
      #expect(calls.releasedCount == 1 && connection.answers[waiting] == nil)
    }
  }

  @Test("a call whose deadline passes before its message has arrived loses its promise")
  func deadline() async throws {
    let (account, calls) = (MessageAccount(), Calls())
    var limits = account.limits
    limits.calls = CallAdmission { _ in .admitted(until: Calls.Promise(calls)) }
    try await serveHealth(limits) { server in
      let connection = try RawConnection(port: server.port)
      let headers = RawConnection.okRequest + [("grpc-timeout", "300m")]
      for message in [nil, Array(Self.message(20_000).prefix(5_000))] {
        #expect(try connection.answer(try connection.open(headers, message: message, ends: false)).status == 4)
      }
      try connection.settle(while: calls.releasedCount < 2)
      #expect(account.now.abandonedIDs == [1])
    }
  }

  @Test("a client may send the rest only of a message that is charged")
  func window() async throws {
    let account = MessageAccount()
    let message = Self.message(1 << 20)
    try await serveHealth(account.limits) { server in
      let connection = try RawConnection(port: server.port)
      let stream = try connection.open(message: Array(message.prefix(40_000)), ends: false)
      try connection.send(message[40_000..<60_000], on: stream)
      try connection.settle()
      #expect(account.now.requests.count == 1 && connection.streamCredit[stream] == nil)
      account.grant(0)
      try connection.wait { connection.streamCredit[stream] != nil }
      let credit = try #require(connection.streamCredit[stream])
      #expect(credit + (64 << 10) >= message.count && credit <= message.count + (64 << 10))
      #expect(account.now.releasedByteCount == 0)
      var rest = message[60_000...]
      while !rest.isEmpty {
        try connection.send(rest.prefix(30_000), on: stream, ends: rest.count <= 30_000)
        rest = rest.dropFirst(30_000)
        // The window of the connection is smaller than the message.
        try connection.settle()
      }
      #expect(try connection.answer(stream).status == 0)
      #expect(account.now.requests[0].byteCount == message.count)
      // The call's objects are freed soon after its answer.
      try connection.settle(while: account.now.releasedByteCount == 0)
      #expect(account.now.releasedByteCount == message.count)
    }
  }

  @Test("a client that has sent the end of its call needs no window", arguments: [40_000, 60_000])
  func ended(byteCount: Int) async throws {
    let account = MessageAccount()
    account.answer(.granted)
    let message = Self.message(byteCount)
    try await serveHealth(account.limits) { server in
      let connection = try RawConnection(port: server.port)
      // All frames arrive at once, and the last one is read when the window would be opened for more.
      for _ in 0..<20 {
        #expect(try connection.answer(try connection.open(message: message, endsAlone: true)).status == 0)
      }
    }
  }

  @Test("small calls pass a connection's message that waits, and its end is remembered")
  func passing() async throws {
    let account = MessageAccount()
    let message = Self.message(20_000)
    try await serveHealth(account.limits) { server in
      let connection = try RawConnection(port: server.port)
      let stream = try connection.open(message: message)
      #expect(try connection.answer(try connection.open()).status == 0)
      #expect(connection.answers[stream] == nil)
      account.grant(0)
      #expect(try connection.answer(stream).status == 0)
    }
  }

  @Test("a message that can never fit, or finds no place, is refused at its prefix")
  func refusals() async throws {
    let account = MessageAccount()
    try await serveHealth(account.limits) { server in
      let connection = try RawConnection(port: server.port)
      let prefix: [UInt8] = [0, 3, 0, 0, 0]
      for (answer, status) in [(MessageAnswer.tooLarge(1000), 9), (.full, 8)] {
        account.answer(answer)
        let refused = try connection.answer(try connection.open(message: prefix, ends: false))
        #expect(refused.status == status && refused.headers["grpc-status-details-bin"] != nil)
      }
      let above = try connection.answer(try connection.open(message: [0, 255, 0, 0, 0], ends: false))
      #expect(above.status == 9 && above.headers["grpc-message"]?.contains("max_message_bytes") == true)
      #expect(account.now.requests.count == 2)
      #expect(try connection.answer(try connection.open()).status == 0)
    }
  }

  @Test("a client that leaves while its message waits gives up its place")
  func leaving() async throws {
    let account = MessageAccount()
    try await serveHealth(account.limits) { server in
      let connection = try RawConnection(port: server.port)
      let stream = try connection.open(message: Array(Self.message(100_000).prefix(50_000)), ends: false)
      try connection.settle()
      try connection.reset(stream)
      try connection.settle()
      #expect(account.now.abandonedIDs == [1])
      // The grant may have been on its way.
      account.grant(0)
      try connection.settle(while: account.now.releasedByteCount == 0)
      #expect(account.now.releasedByteCount == account.now.requests[0].byteCount)
    }
  }
}
