import GRPCCore
import Logging
import NIOCore
import Testing

@testable import WorkerOperations

/// What RFC 9113 demands of frames in the wrong place or with wrong contents; h2spec has the same cases.
@Suite("HTTP/2 conformance", .timeLimit(.minutes(15)))
struct ConformanceTests {
  private static let (protocolError, flowControlError, streamClosed, frameSizeError, refusedStream):
    (
      UInt32, UInt32, UInt32, UInt32, UInt32
    ) = (1, 3, 5, 6, 7)

  private func serve(
    frameByteCount: Int = 16 << 10, _ body: @escaping @Sendable (RawConnection) throws -> Void
  ) async throws {
    let limits = ConnectionLimits(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    try await serveHealth(limits, frameByteCount: frameByteCount) { server in
      try body(try RawConnection(port: server.port))
    }
  }

  /// Whether other calls of the connection go on.
  private static func goesOn(_ connection: RawConnection) throws -> Bool {
    try connection.answer(connection.open()).status == 0 && connection.goAways.isEmpty
  }

  @Test(
    "data on a call that its client has ended is STREAM_CLOSED, whether it is open or not", arguments: [true, false])
  func dataAfterEnd(isOpen: Bool) async throws {
    try await serve { connection in
      let stream = try connection.open(isOpen ? RawConnection.watchRequest : RawConnection.okRequest)
      if !isOpen { #expect(try connection.answer(stream).status == 0) }
      try connection.send(.data, stream: stream, [0])
      try connection.wait { connection.answers[stream]?.reset != nil }
      #expect(connection.answers[stream]?.reset == Self.streamClosed)
      #expect(try Self.goesOn(connection))
    }
  }

  @Test("a call whose headers are its end is answered as one whose end follows them")
  func headersAlone() async throws {
    try await serve { connection in
      let following = try connection.answer(connection.open(message: []))
      let alone = try connection.answer(connection.open(message: nil))
      #expect(alone.status != nil && alone.status != 0 && alone == following)
      #expect(try Self.goesOn(connection))
    }
  }

  @Test("data on a call that its client has cancelled is STREAM_CLOSED")
  func dataAfterReset() async throws {
    try await serve { connection in
      let stream = try connection.open(RawConnection.watchRequest, ends: false)
      try connection.reset(stream)
      try connection.send(.data, stream: stream, [0])
      try connection.wait { connection.answers[stream]?.reset == Self.streamClosed }
      #expect(try Self.goesOn(connection))
    }
  }

  @Test("data that was on its way when the worker ended a call is no error, but only until its end")
  func dataAfterAnswer() async throws {
    try await serve { connection in
      let stream = try connection.open(RawConnection.okRequest + [("grpc-timeout", "x")], ends: false)
      #expect(try connection.answer(stream).status == 3)
      try connection.settle()
      let reset = connection.answers[stream]?.reset
      try connection.send(.data, stream: stream, [0, 0, 0])
      try connection.send(.data, flags: FrameHeader.endStream, stream: stream, [0, 0])
      #expect(try Self.goesOn(connection) && connection.answers[stream]?.reset == reset)
      try connection.send(.data, stream: stream, [0])
      try connection.wait { connection.answers[stream]?.reset == Self.streamClosed }
      #expect(try Self.goesOn(connection))
    }
  }

  @Test("an increment of 0 is PROTOCOL_ERROR, on open calls, ended calls and the connection")
  func zeroIncrement() async throws {
    for isOpen in [true, false] {
      try await serve { connection in
        let stream = try connection.open(isOpen ? RawConnection.watchRequest : RawConnection.okRequest)
        if !isOpen { #expect(try connection.answer(stream).status == 0) }
        try connection.send(.windowUpdate, stream: stream, [0, 0, 0, 0])
        try connection.wait { connection.answers[stream]?.reset != nil || !connection.goAways.isEmpty }
        #expect((connection.answers[stream]?.reset ?? connection.goAways.first?.code) == Self.protocolError)
      }
    }
    try await serve { connection in
      try connection.send(.windowUpdate, stream: 0, [0, 0, 0, 0])
      connection.waitForEnd()
      #expect(connection.goAways.map(\.code) == [Self.protocolError])
    }
  }

  @Test("a window above 2^31 - 1 is FLOW_CONTROL_ERROR, of the call or of the connection", arguments: [true, false])
  func windowOverflow(isOfCall: Bool) async throws {
    try await serve { connection in
      let stream = try connection.open(RawConnection.watchRequest)
      try connection.wait { connection.reads.joined().contains(.data) }
      for _ in 0..<2 { try connection.send(.windowUpdate, stream: isOfCall ? stream : 0, [0x7f, 0xff, 0xff, 0xff]) }
      if isOfCall {
        try connection.wait { connection.answers[stream]?.reset != nil }
        #expect(connection.answers[stream]?.reset == Self.flowControlError)
        #expect(try Self.goesOn(connection))
      } else {
        connection.waitForEnd()
        #expect(connection.goAways.map(\.code) == [Self.flowControlError])
      }
    }
  }

  @Test(
    "a frame above SETTINGS_MAX_FRAME_SIZE is FRAME_SIZE_ERROR, on open and ended calls",
    arguments: [FrameHeader.Kind.data, .headers, .priority, .windowUpdate, .ping])
  func frameSize(kind: FrameHeader.Kind) async throws {
    for isOpen in [true, false] {
      try await serve { connection in
        let stream = try connection.open(RawConnection.watchRequest, ends: !isOpen)
        if !isOpen { try connection.reset(stream) }
        try connection.settle()
        let isOfConnection = kind == .ping
        try? connection.send(
          kind, stream: isOfConnection ? 0 : kind == .headers ? stream + 2 : stream,
          [UInt8](repeating: 0, count: 16_385))
        connection.waitForEnd()
        #expect(connection.goAways.map(\.code) == [Self.frameSizeError])
      }
    }
  }

  @Test("a call that depends on itself is PROTOCOL_ERROR")
  func selfDependency() async throws {
    try await serve { connection in
      let stream = try connection.open(RawConnection.watchRequest)
      try connection.send(.priority, stream: stream, [0, 0, 0, UInt8(stream), 15])
      try connection.wait { connection.answers[stream]?.reset != nil || !connection.goAways.isEmpty }
      #expect((connection.answers[stream]?.reset ?? connection.goAways.first?.code) == Self.protocolError)
    }
  }

  @Test("more open calls than the 100 of the default setting are PROTOCOL_ERROR")
  func concurrency() async throws {
    try await serve { connection in
      for _ in 0..<100 { _ = try connection.open(RawConnection.watchRequest) }
      try connection.settle()
      #expect(connection.goAways.isEmpty)
      _ = try connection.open(RawConnection.watchRequest)
      connection.waitForEnd()
      #expect(connection.goAways.map(\.code) == [Self.protocolError])
    }
  }

  @Test(
    "a path that is no name of a method fails its call alone", arguments: [",", String(repeating: "/x", count: 200)])
  func unusualPath(text: String) async throws {
    try await serve { connection in
      let request = RawConnection.okRequest.map { $0.0 == ":path" ? ($0.0, text + $0.1) : $0 }
      let stream = try connection.open(request)
      #expect(try connection.answer(stream).status == 12)
      #expect(try Self.goesOn(connection))
    }
  }

  @Test("settings of more than 64 entries close the connection")
  func manySettings() async throws {
    try await serve { connection in
      for count in [64, 65] {
        try connection.send(.settings, stream: 0, [UInt8](repeating: 0, count: 6 * count))
        if count == 64 { #expect(try Self.goesOn(connection)) }
      }
      connection.waitForEnd()
      #expect(connection.goAways.map(\.code) == [11])
    }
  }

  @Test("data that contradicts content-length is PROTOCOL_ERROR")
  func contentLength() async throws {
    try await serve { connection in
      let stream = try connection.open(RawConnection.okRequest + [("content-length", "1")])
      try connection.wait { connection.answers[stream]?.reset != nil }
      #expect(connection.answers[stream]?.reset == Self.protocolError)
      #expect(try Self.goesOn(connection))
    }
  }

  @Test(
    "a flood of frames that carry no call closes the connection",
    arguments: [
      ("WINDOW_UPDATE of the connection", 8, 0, 0, [0, 0, 0, 1]),
      ("WINDOW_UPDATE of an ended call", 8, 0, 1, [0, 0, 0, 1]),
      ("GOAWAY", 7, 0, 0, [0, 0, 0, 0, 0, 0, 0, 0]), ("PRIORITY", 2, 0, 1, [0, 0, 0, 0, 15]),
      ("an unknown kind", 0xfa, 0, 0, []), ("an answer to no PING", 6, 1, 0, [0, 0, 0, 0, 0, 0, 0, 0]),
      ("RST_STREAM of an ended call", 3, 0, 1, [0, 0, 0, 8]), ("DATA of an ended call", 0, 0, 1, [0]),
    ] as [(String, UInt8, UInt8, UInt32, [UInt8])])
  func flood(name: String, kind: UInt8, flags: UInt8, stream: UInt32, payload: [UInt8]) async throws {
    try await serve { connection in
      #expect(try connection.answer(try connection.open()).status == 0)
      var header = FrameHeader(length: payload.count, kind: .data, flags: flags, stream: stream)
      header.type = kind
      var frames = ByteBuffer()
      for _ in 0..<1000 {
        frames.write(header)
        frames.writeBytes(payload)
      }
      // What a busy client may send.
      for _ in 0..<9 { try connection.send(frames) }
      try connection.settle()
      #expect(connection.goAways.isEmpty)
      for _ in 0..<20 { guard (try? connection.send(frames)) != nil else { break } }
      connection.waitForEnd()
      #expect(connection.goAways.map(\.code) == [11])
      #expect(connection.goAways.first?.reason == "too_many_control_frames")
    }
  }
}
