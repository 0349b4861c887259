import Foundation
import NIOCore
import Synchronization
import Testing
import WorkThreads

@testable import WorkerOperations

/// What a call takes of the worker, and what its client learns of its end.
@Suite("RequestGuard", .timeLimit(.minutes(15)))
struct RequestGuardTests {
  /// The frame header and a part of a message of `byteCount` bytes.
  private static func beginning(of byteCount: Int) -> [UInt8] {
    [0] + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: byteCount >> $0) } + [0x7a]
  }

  @Test("the memory of a call is taken while it lasts, and a call without it is refused")
  func occupation() async throws {
    let account = MessageAccount(.granted)
    try await serveHealth(account.limits) { server in
      let connection = try RawConnection(port: server.port)
      try connection.settle()
      let before = account.now.occupiedByteCount
      let stream = try connection.open(RawConnection.watchRequest)
      try connection.wait { connection.reads.joined().contains(.data) }
      #expect(account.now.occupiedByteCount == before + (16 << 10))
      try connection.reset(stream)
      try connection.settle(while: account.now.occupiedByteCount > before)
      #expect(account.now.occupiedByteCount == before)
    }
  }

  @Test("a client that leaves while its message waits gives up its place")
  func lostConnection() async throws {
    let account = MessageAccount(.waiting(7))
    try await serveHealth(account.limits) { server in
      do {
        let connection = try RawConnection(port: server.port)
        _ = try connection.open(message: Self.beginning(of: 100_000), ends: false)
        try connection.settle(while: account.now.requests.isEmpty)
      }
      let other = try RawConnection(port: server.port)
      try other.settle(while: account.now.abandonedIDs.count == 0)
      #expect(account.now.abandonedIDs.count == 1)
    }
  }

  @Test("the refusal of a call contains the time after which to try again")
  func retryDelay() async throws {
    func details(_ delay: Duration?) async throws -> [UInt8] {
      var limits = MessageAccount(.granted).limits
      limits.calls = CallAdmission { _ in .refused("later", retryDelay: delay) }
      let found = Mutex<[UInt8]>([])
      try await serveHealth(limits) { server in
        let connection = try RawConnection(port: server.port)
        let answer = try connection.answer(try connection.open())
        var text = answer.headers["grpc-status-details-bin"] ?? ""
        text += String(repeating: "=", count: (4 - text.count % 4) % 4)
        found.withLock { $0 = Data(base64Encoded: text).map { Array($0) } ?? [] }
      }
      return found.withLock { $0 }
    }
    // google.protobuf.Duration in google.rpc.RetryInfo: seconds are field 1, and nanoseconds field 2.
    let nanoseconds: [UInt8] = [0x10, 0x80, 0xCA, 0xB5, 0xEE, 0x01]
    #expect(try await details(.milliseconds(2500)).contains([0x08, 2] + nanoseconds))
    let missing = try await details(nil)
    #expect(missing.contains([0x08, 1]) && !missing.contains(nanoseconds))
  }

  @Test("responses name the accepted compressions, also those that the handler makes")
  func acceptedEncodings() async throws {
    try await serveHealth(MessageAccount(.granted).limits) { server in
      let connection = try RawConnection(port: server.port)
      for headers in [RawConnection.okRequest, RawConnection.okRequest + [("grpc-timeout", "x")]] {
        let answer = try connection.answer(try connection.open(headers))
        #expect(answer.headers["grpc-accept-encoding"] == RequestHeaders.encodings)
      }
    }
  }

  @Test("a call that was answered in part ends with a status alone when its deadline passes")
  func lateDeadline() async throws {
    try await serveHealth(MessageAccount(.granted).limits) { server in
      var headerCount = 0
      // A busy machine may not answer in part before a short deadline.
      for timeout in ["500m", "5S", "50S"] where headerCount < 2 {
        let connection = try RawConnection(port: server.port)
        let stream = try connection.open(RawConnection.watchRequest + [("grpc-timeout", timeout)])
        #expect(try connection.answer(stream).status == 4)
        headerCount = connection.reads.joined().filter { $0 == .headers }.count
        #expect(try connection.answer(try connection.open()).status == 0 && connection.goAways.isEmpty)
      }
      #expect(headerCount == 2)
    }
  }

  @Test("a message is asked for with what may arrive of it, and whether its call has sent another one")
  func requests() async throws {
    let account = MessageAccount(.granted)
    try await serveHealth(account.limits) { server in
      let connection = try RawConnection(port: server.port)
      let first = [UInt8](repeating: 0, count: 2000)
      let small = [0, 0, 0, 7, 208] as [UInt8] + first
      _ = try connection.open(message: small + Self.beginning(of: 1 << 20), ends: false)
      try connection.settle(while: account.now.requests.count < 2)
      #expect(account.now.requests.map(\.isContinuation) == [false, true])
      #expect(account.now.requests.map(\.byteCount) == [2005, (1 << 20) + 5])
      #expect(account.now.requests.map(\.bufferedByteCount) == [2005, 64 << 10])
    }
  }

  @Test(
    "a call whose client does not end its stream ends, unless its method has any number of messages",
    arguments: [nil, []] as [Set<String>?], [true, false])
  func missingEnd(streamingPaths: Set<String>?, hasMessage: Bool) async throws {
    var limits = MessageAccount(.granted).limits
    limits.time.checkInterval = .milliseconds(100)
    limits.time.upload = .milliseconds(500)
    limits.streamingPaths = streamingPaths
    try await serveHealth(limits) { server in
      let connection = try RawConnection(port: server.port)
      let stream = try connection.open(message: hasMessage ? RawConnection.emptyMessage : nil, ends: false)
      if streamingPaths == nil {
        usleep(1_500_000)
        try connection.settle()
        #expect(connection.answers[stream]?.status == nil)
      } else {
        let answer = try connection.answer(stream)
        #expect(answer.status == 4 && answer.headers["grpc-message"]?.contains("did not end its stream") == true)
      }
    }
  }

  @Test("the stream of a call that was answered is reset if its client does not end it")
  func openEnd() async throws {
    try await serveHealth(ConnectionLimits()) { server in
      let connection = try RawConnection(port: server.port)
      let unknown = RawConnection.okRequest.map { ($0.0, $0.0 == ":path" ? "/grpc.health.v1.Health/None" : $0.1) }
      let stream = try connection.open(unknown, ends: false)
      try connection.wait { connection.answers[stream]?.reset != nil }
      #expect(connection.answers[stream]?.status == 12 && connection.answers[stream]?.reset == 0)
      #expect(try connection.answer(try connection.open()).status == 0)
    }
  }

  @Test("a message that stops, or is slower than its size allows, ends its call", arguments: [1000, 1])
  func slowMessage(minBytesPerSecond: Int) async throws {
    var limits = MessageAccount(.granted).limits
    limits.time.checkInterval = .milliseconds(100)
    limits.time.upload = .milliseconds(500)
    limits.time.minBytesPerSecond = minBytesPerSecond
    // So that a message of 1 MiB has to arrive at 1 MiB a second.
    limits.time.message = minBytesPerSecond == 1 ? .seconds(1) : .seconds(3600)
    try await serveHealth(limits) { server in
      let connection = try RawConnection(port: server.port)
      let message = Self.beginning(of: 1 << 20) + [UInt8](repeating: 0, count: 50_000)
      let stream = try connection.open(message: message, ends: false)
      if minBytesPerSecond == 1 {
        // Faster than the minimum rate, and slower than the message's.
        for _ in 0..<150 {
          try connection.send([0], on: stream)
          usleep(20_000)
        }
        try connection.settle()
        #expect(connection.answers[stream] != nil)
      }
      let answer = try connection.answer(stream)
      #expect(answer.status == 4 && answer.headers["grpc-message"]?.contains("upload_timeout_seconds") == true)
    }
  }
}
