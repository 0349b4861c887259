import GRPCCore
import GRPCNIOTransportHTTP2Posix
import Logging
import NIOCore
import Synchronization
import TestSupport
import Testing
import WorkerProtocol

@testable import WorkerOperations

/// Tests a server that has only the health service, with clients that write HTTP/2 frames directly.
@Suite("ConnectionGuard", .timeLimit(.minutes(15)))
struct ConnectionGuardTests {
  private func serve(
    _ limits: ConnectionLimits = ConnectionLimits(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }),
    frameByteCount: Int = 16 << 10, _ body: @escaping @Sendable (HealthServer) throws -> Void
  ) async throws {
    try await serveHealth(limits, frameByteCount: frameByteCount, body)
  }

  @Test(
    "only an invalid timeout is refused",
    arguments: [
      "-1S", "-99S", "", "S", "1", "1X", "1 S", "+1S", "0x1S", "123456789S", "9223372036854775808n", "１S", "1s",
    ])
  func timeouts(value: String) async throws {
    try await serve { server in
      let connection = try RawConnection(port: server.port)
      let stream = try connection.open(RawConnection.okRequest + [("grpc-timeout", value)])
      #expect(try connection.answer(stream).status == 3)
      let valid = try connection.open(RawConnection.okRequest + [("grpc-timeout", "99999999H")])
      #expect(try connection.answer(valid).status == 0)
    }
  }

  @Test("a deadline that passes is DEADLINE_EXCEEDED", arguments: ["100m", "90000000n"])
  func deadline(value: String) async throws {
    try await serve { server in
      let connection = try RawConnection(port: server.port)
      let stream = try connection.open(
        RawConnection.watchRequest + [("grpc-timeout", value), ("image-worker-deadline", "0 0")])
      #expect(try connection.answer(stream).status == 4)
    }
  }

  @Test("random request headers do not affect other connections", arguments: [1, 2, 3, 4] as [UInt64])
  func randomHeaders(seed: UInt64) async throws {
    try await serve { server in
      var random = SeededGenerator(seed: seed)
      let other = try RawConnection(port: server.port)
      let watch = try other.open(RawConnection.watchRequest)
      for _ in 0..<20 {
        let connection = try RawConnection(port: server.port)
        for _ in 0..<25 {
          // The HTTP/2 handler may end a connection whose header fields violate HTTP.
          guard let stream = try? connection.open(Self.fields(&random), ends: random.next() % 8 != 0) else { break }
          if random.next() % 2 == 0, (try? connection.reset(stream)) == nil { break }
        }
        #expect(try other.answer(try other.open()).status == 0)
      }
      #expect(other.goAways.isEmpty && other.answers[watch]?.reset == nil && other.answers[watch]?.status == nil)
    }
  }

  /// Returns the fields of a valid request, some of them removed, changed or duplicated.
  private static func fields(_ random: inout SeededGenerator) -> [(String, String)] {
    let names = [
      "grpc-timeout", "grpc-encoding", "grpc-accept-encoding", "content-type", "te", ":path", ":method", ":scheme",
      ":authority", "x-bin", "x", "grpc-message-type", "user-agent", "traceparent", "content-length", "host",
      "connection",
      ":status", ":protocol", "grpc-status", "image-worker-deadline", "cookie", "X-Upper", "",
    ]
    let values = [
      "", "0", "-1", "-1S", "1S", "99999999H", "18446744073709551616n", "gzip", "identity", "snappy,gzip",
      "application/grpc",
      "application/grpc+proto", "application/grpc;x", "text/html", "/", "//", "/a/b/c", "/grpc.health.v1.Health/",
      "/grpc.health.v1.Health/Check", "%00", "\u{e9}", "====", "AAA", "_-_-", "POST", "GET", "http", "https",
      "trailers",
      String(repeating: "z", count: 3000), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "\t", "a b", "1",
    ]
    var fields = RawConnection.okRequest
    for _ in 0...(random.next() % 4) {
      let field = (
        names[Int.random(in: 0..<names.count, using: &random)], values[Int.random(in: 0..<values.count, using: &random)]
      )
      switch random.next() % 4 {
      case 0: fields.append(field)
      case 1: fields.insert(field, at: Int.random(in: 0..<fields.count + 1, using: &random))
      case 2 where !fields.isEmpty: fields.remove(at: Int.random(in: 0..<fields.count, using: &random))
      default: if !fields.isEmpty { fields[Int.random(in: 0..<fields.count, using: &random)].1 = field.1 }
      }
    }
    return fields
  }

  @Test("a client that estimates its bandwidth may ping with everything it receives")
  func pings() async throws {
    try await serve { server in
      let connection = try RawConnection(port: server.port)
      for round in 1...600 {
        try connection.send(.priority, stream: 1, [0, 0, 0, 0, 15])  // dropped, and not counted as a flood
        let stream = try connection.open()
        try connection.ping()
        #expect(try connection.answer(stream).status == 0)
        try connection.wait { connection.pingAnswers == round }
      }
      #expect(connection.goAways.isEmpty)
    }
  }

  @Test("the headers, the message and the status of a call that its client has ended are sent together")
  func together() async throws {
    try await serve { server in
      let connection = try RawConnection(port: server.port)
      for _ in 0..<20 {
        let stream = try connection.open()
        #expect(try connection.answer(stream).status == 0)
        #expect(connection.reads.last == [.headers, .data, .headers])
      }
    }
  }

  @Test("the first messages of a call that goes on are sent at once")
  func firstMessage() async throws {
    try await serve { server in
      let connection = try RawConnection(port: server.port)
      _ = try connection.open(RawConnection.watchRequest)
      try connection.wait { connection.reads.joined().contains(.data) }
      #expect(connection.reads.last == [.headers, .data])
    }
  }

  @Test("a flood of pings closes the connection with the reason")
  func pingFlood() async throws {
    try await serve { server in
      let connection = try RawConnection(port: server.port)
      for _ in 0..<2000 { guard (try? connection.ping()) != nil else { break } }
      connection.waitForEnd()
      #expect(connection.goAways.map(\.code) == [11] && connection.goAways.first?.reason == "too_many_pings")
      #expect(connection.pingAnswers < 250)
    }
  }

  @Test("a flood of settings closes the connection")
  func settingsFlood() async throws {
    try await serve { server in
      let connection = try RawConnection(port: server.port)
      for _ in 0..<400 { guard (try? connection.send(.settings, stream: 0)) != nil else { break } }
      connection.waitForEnd()
      // The HTTP/2 handler, whose limit is higher, sends no reason.
      #expect(connection.goAways.map(\.code) == [11] && connection.goAways.first?.reason == "too_many_settings")
    }
  }

  @Test("data for ended calls is returned to the connection's window")
  func window() async throws {
    try await serve { server in
      let connection = try RawConnection(port: server.port)
      let ended = try connection.open()
      #expect(try connection.answer(ended).status == 0)
      let before = connection.credit
      for _ in 0..<64 { try connection.send(.data, stream: ended, [UInt8](repeating: 0, count: 16_000)) }
      #expect(try connection.answer(try connection.open()).status == 0)
      #expect(connection.credit - before == 64 * 16_000)
      #expect(connection.goAways.isEmpty)
    }
  }

  @Test("metadata above the limit fails only its own call", arguments: [20_000, 60_000, 120_000, 900_000])
  func metadata(byteCount: Int) async throws {
    try await serve(frameByteCount: 256 << 10) { server in
      let connection = try RawConnection(port: server.port)
      let large = (0..<byteCount / 1000).map { ("x-\($0)", String(repeating: "v", count: 960)) }
      #expect(try connection.answer(try connection.open(RawConnection.okRequest + large)).status == 8)
      #expect(try connection.answer(try connection.open()).status == 0)
    }
  }

  @Test(
    "a header field that HTTP forbids fails only its own call",
    arguments: [
      ("connection", "close"), ("te", "gzip"), ("X-Upper", "1"), (":status", "200"), ("content-length", "-1"),
      ("transfer-encoding", "chunked"), ("x", "\u{0}"), ("x y", "1"), (":path", "/"), (":unknown", "1"),
    ])
  func forbidden(name: String, value: String) async throws {
    try await serve { server in
      let connection = try RawConnection(port: server.port)
      _ = try connection.answer(try connection.open(RawConnection.okRequest + [(name, value)]))
      _ = try connection.answer(try connection.open([(name, value)] + RawConnection.okRequest))
      #expect(try connection.answer(try connection.open()).status == 0)
      #expect(connection.goAways.isEmpty)
    }
  }

  @Test("a client cannot enlarge the table of its responses' headers")
  func headerTable() async throws {
    try await serve { server in
      let connection = try RawConnection(port: server.port)
      // The client's decoder would not accept a table above its initial size of 4096 bytes.
      for settings: [UInt8] in [[0, 1, 0, 0x10, 0, 0], [0, 5, 0, 0, 0x40, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]] {
        try connection.send(.settings, stream: 0, settings)
        #expect(try connection.answer(try connection.open()).status == 0)
      }
      // A smaller one is respected.
      try connection.send(.settings, stream: 0, [0, 1, 0, 0, 0, 0])
      #expect(try connection.answer(try connection.open()).status == 0)
      #expect(connection.goAways.isEmpty)
    }
  }

  @Test("messages of methods without images have a limit of their own")
  func otherMessages() async throws {
    var limits = ConnectionLimits(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    limits.maxOtherMessageByteCount = 1000
    let field: [UInt8] = [0x7a, 0x80, 0x10] + [UInt8](repeating: 1, count: 2048)
    for (paths, status) in [(Set<String>(), 9), (["/grpc.health.v1.Health/Check"], 0), (nil, 0)] {
      limits.imagePaths = paths
      try await serve(limits) { server in
        let connection = try RawConnection(port: server.port)
        let answer = try connection.answer(try connection.open(message: [0, 0, 0, 8, 3] + field))
        #expect(answer.status == status)
        let compressed = RawConnection.okRequest + [("grpc-encoding", "gzip")]
        #expect(
          try connection.answer(try connection.open(compressed, message: try compress(field, .gzip))).status == status)
        guard status != 0 else { return }
        #expect(
          answer.headers["grpc-message"]
            == "a message has 2051 bytes, above request_bytes_besides_images, which allows 1000 in one")
      }
    }
  }

  @Test("a large compressed message is read in several turns of the event loop, to its end")
  func turns() async throws {
    let request = RawConnection.okRequest + [("grpc-encoding", "gzip")]
    let field: [UInt8] = [0x7a, 0x80, 0x80, 0xc0, 0x01] + [UInt8](repeating: 1, count: 3 << 20)
    let message = try compress(field, .gzip)
    try await serve { server in
      let connection = try RawConnection(port: server.port)
      for endsAlone in [true, false] {
        let stream = try connection.open(request, message: message, endsAlone: endsAlone)
        #expect(try connection.answer(stream).status == 0)
      }
    }
  }

  @Test("compressed requests are read, within limits", arguments: ["gzip", "deflate"])
  func compression(name: String) async throws {
    var limits = ConnectionLimits(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    limits.maxMessageByteCount = 1 << 20
    let format = try #require(MessageInflater.Format(rawValue: name))
    let request = RawConnection.okRequest + [("grpc-encoding", name), ("grpc-accept-encoding", name)]
    let (empty, bomb) = (try compress([], format), try compress([UInt8](repeating: 0, count: 16 << 20), format))
    #expect(bomb.count < 20_000)
    try await serve(limits) { server in
      let connection = try RawConnection(port: server.port)
      let answer = try connection.answer(try connection.open(request, message: empty))
      #expect(answer.status == 0 && answer.headers["grpc-accept-encoding"] == "identity,deflate,gzip")
      #expect(answer.headers["grpc-encoding"] == nil)
      #expect(try connection.answer(try connection.open(request, message: bomb)).status == 9)
      #expect(try connection.answer(try connection.open(request, message: [1, 0, 0, 0, 3, 1, 2, 3])).status == 3)
      let unknown = RawConnection.okRequest + [("grpc-encoding", "snappy")]
      let refused = try connection.answer(try connection.open(unknown))
      #expect(refused.status == 12 && refused.headers["grpc-accept-encoding"] == "identity,deflate,gzip")
      #expect(try connection.answer(try connection.open()).status == 0)
    }
  }

  @Test("a drain serves calls sent before the client learned of it, and none after")
  func drain() async throws {
    var limits = ConnectionLimits(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    limits.endedByDrain = []
    limits.time.drainAnswer = .seconds(300)
    try await serve(limits) { server in
      let connection = try RawConnection(port: server.port)
      connection.answersPings = false
      let begun = try connection.open(ends: false)
      server.drain()
      try connection.wait { connection.serverPing != nil }
      #expect(connection.goAways.map(\.lastStream) == [FrameHeader.lastStream])
      let late = try connection.open()
      #expect(try connection.answer(late).status == 0)
      try connection.ping(connection.serverPing ?? 0, isAnswer: true)
      try connection.wait { connection.goAways.count == 2 }
      #expect(connection.goAways[1].lastStream == late && connection.goAways[1].code == 0)
      #expect(try connection.answer(try connection.open()).reset == 7)
      try connection.send(.data, flags: 1, stream: begun)
      #expect(try connection.answer(begun).status == 0)
      connection.waitForEnd()
    }
  }

  @Test("a drain does not wait for idle clients", arguments: [true, false])
  func idle(isWatching: Bool) async throws {
    let clock = ContinuousClock()
    let start = Mutex(clock.now)
    try await serve { server in
      let connection = try RawConnection(port: server.port)
      connection.answersPings = false
      let watch = isWatching ? try connection.open(RawConnection.watchRequest) : nil
      if let watch { try connection.wait { connection.answers[watch] != nil } }
      start.withLock { $0 = clock.now }
      server.drain()
      connection.waitForEnd()
      if let watch { #expect(connection.answers[watch]?.status == 0) }
    }
    // Waiting for its client would take the 30 s after which gRPC closes what is open.
    #expect(clock.now - start.withLock { $0 } < .seconds(20))
  }
}
