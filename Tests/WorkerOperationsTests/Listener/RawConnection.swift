import Dispatch
import NIOCore
import NIOHPACK

@testable import WorkerOperations

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// An HTTP/2 client that sends any frames, valid or invalid, and blocks its thread.
final class RawConnection {
  struct Frame {
    var header: FrameHeader
    var payload: ByteBuffer
  }

  /// The response on one stream.
  struct Answer: Equatable {
    var status: Int?
    var reset: UInt32?
    var headers: [String: String] = [:]
  }

  struct Closed: Error {}

  private let descriptor: CInt
  private var received = ByteBuffer()
  private var encoder = HPACKEncoder(allocator: ByteBufferAllocator())
  private var decoder = HPACKDecoder(allocator: ByteBufferAllocator())
  private(set) var answers: [UInt32: Answer] = [:]
  private(set) var goAways: [(lastStream: UInt32, code: UInt32, reason: String)] = []
  private(set) var pingAnswers = 0
  /// Number of bytes that the server has added to the connection's window.
  private(set) var credit = 0
  /// Number of bytes that the server has added to the windows of streams.
  private(set) var streamCredit: [UInt32: Int] = [:]
  /// Whether the client answers the server's PING frames.
  var answersPings = true
  private(set) var serverPing: UInt64?
  /// The kinds of the frames of calls, by the read that they arrived in.
  private(set) var reads: [[FrameHeader.Kind]] = []
  private var nextStream: UInt32 = 1

  static let okRequest: [(String, String)] = [
    (":method", "POST"), (":scheme", "http"), (":path", "/grpc.health.v1.Health/Check"), (":authority", "test"),
    ("te", "trailers"), ("content-type", "application/grpc"),
  ]
  static let watchRequest = okRequest.map { $0.0 == ":path" ? ($0.0, "/grpc.health.v1.Health/Watch") : $0 }
  /// A message without content.
  static let emptyMessage: [UInt8] = [0, 0, 0, 0, 0]

  /// Runs blocking work on its own thread.
  static func onThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      DispatchQueue(label: "raw client").async {
        continuation.resume(with: Swift.Result { try body() })
      }
    }
  }

  /// Returns the descriptor of a new connection, on which nothing was sent.
  static func connected(port: Int) throws -> CInt {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let status = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard status == 0 else {
      _ = close(descriptor)
      throw Closed()
    }
    return descriptor
  }

  init(port: Int) throws {
    descriptor = try Self.connected(port: port)
    var preface = ByteBuffer(string: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    preface.write(FrameHeader(length: 0, kind: .settings))
    try send(preface)
    // The client must acknowledge the server's SETTINGS before a call may rely on them.
    while settingsCount < 2 { try receive() }
  }

  deinit { _ = close(descriptor) }

  private(set) var settingsCount = 0
  /// The window of streams that begin, as the server has announced it last.
  private(set) var firstWindow: Int?

  func send(_ bytes: ByteBuffer) throws {
    var rest = bytes.readableBytesView[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { sendBytes($0, to: descriptor) }
      guard count > 0 else { throw Closed() }
      rest = rest.dropFirst(count)
    }
  }

  func send(_ kind: FrameHeader.Kind, flags: UInt8 = 0, stream: UInt32, _ payload: [UInt8] = []) throws {
    var bytes = ByteBuffer()
    bytes.write(FrameHeader(length: payload.count, kind: kind, flags: flags, stream: stream))
    bytes.writeBytes(payload)
    try send(bytes)
  }

  /// Starts a call and returns its stream.
  ///
  /// With `endsAlone`, a frame without bytes ends the call, as grpc-go does it.
  func open(
    _ fields: [(String, String)] = RawConnection.okRequest, message: [UInt8]? = RawConnection.emptyMessage,
    ends: Bool = true, endsAlone: Bool = false
  ) throws
    -> UInt32
  {
    let stream = nextStream
    nextStream += 2
    var block = ByteBuffer()
    try encoder.beginEncoding(allocator: ByteBufferAllocator())
    for (name, value) in fields { try encoder.append(header: name, value: value) }
    block = try encoder.endEncoding()
    var bytes = ByteBuffer()
    var kind = FrameHeader.Kind.headers
    repeat {
      var part = block.readSlice(length: min(16_384, block.readableBytes)) ?? ByteBuffer()
      let isLast = block.readableBytes == 0
      let flags = (isLast ? FrameHeader.endHeaders : 0) | (kind == .headers && message == nil && ends ? 1 : 0)
      bytes.write(FrameHeader(length: part.readableBytes, kind: kind, flags: flags, stream: stream))
      bytes.writeBuffer(&part)
      kind = .continuation
    } while block.readableBytes > 0
    if let message { Self.append(message, stream: stream, ends: ends && !endsAlone, to: &bytes) }
    if endsAlone { Self.append([], stream: stream, ends: true, to: &bytes) }
    try send(bytes)
    return stream
  }

  private static func append(_ message: [UInt8], stream: UInt32, ends: Bool, to bytes: inout ByteBuffer) {
    var rest = message[...]
    repeat {
      let part = rest.prefix(16_384)
      rest = rest.dropFirst(part.count)
      bytes.write(FrameHeader(length: part.count, kind: .data, flags: ends && rest.isEmpty ? 1 : 0, stream: stream))
      bytes.writeBytes(part)
    } while !rest.isEmpty
  }

  /// Sends bytes of a call.
  func send(_ message: some Collection<UInt8>, on stream: UInt32, ends: Bool = false) throws {
    var bytes = ByteBuffer()
    Self.append(Array(message), stream: stream, ends: ends, to: &bytes)
    try send(bytes)
  }

  /// Waits until the server has read everything that was sent before.
  func settle() throws {
    let answers = pingAnswers
    try ping()
    try wait { pingAnswers > answers }
  }

  /// Waits as `settle()` does until the server's state has changed, with few pings, which are limited.
  func settle(while condition: @autoclosure () -> Bool) throws {
    var polls = 0
    while condition() {
      polls += 1
      guard polls < 30_000 else { throw Closed() }
      usleep(10_000)
    }
    try settle()
  }

  func ping(_ data: UInt64 = 7, isAnswer: Bool = false) throws {
    var bytes = ByteBuffer()
    bytes.writePing(data, isAnswer: isAnswer)
    try send(bytes)
  }

  func reset(_ stream: UInt32) throws { try send(.reset, stream: stream, [0, 0, 0, 8]) }

  /// Receives frames until a condition is true.
  func wait(seconds: Int32 = 300, until condition: () -> Bool) throws {
    while !condition() { try receive(seconds: seconds) }
  }

  /// Waits for the response on a stream.
  func answer(_ stream: UInt32) throws -> Answer {
    try wait { answers[stream].map { $0.status != nil || $0.reset != nil } ?? false }
    return answers[stream] ?? Answer()
  }

  /// Receives frames until the server closes the connection.
  func waitForEnd() {
    while (try? receive()) != nil {}
  }

  private func receive(seconds: Int32 = 300) throws {
    var event = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&event, 1, seconds * 1000) == 1 else { throw Closed() }
    let count = received.writeWithUnsafeMutableBytes(minimumWritableBytes: 65_536) { buffer in
      max(0, read(descriptor, buffer.baseAddress, buffer.count))
    }
    guard count > 0 else { throw Closed() }
    reads.append([])
    while let header = FrameHeader(received, at: received.readerIndex),
      received.readableBytes >= FrameHeader.byteCount + header.length
    {
      received.moveReaderIndex(forwardBy: FrameHeader.byteCount)
      try take(Frame(header: header, payload: received.readSlice(length: header.length) ?? ByteBuffer()))
    }
  }

  private func take(_ frame: Frame) throws {
    var frame = frame
    let stream = frame.header.stream
    if stream > 0, let kind = frame.header.kind { reads[reads.count - 1].append(kind) }
    switch frame.header.kind {
    case .headers:
      for field in try decoder.decodeHeaders(from: &frame.payload) {
        answers[stream, default: Answer()].headers[field.name] = field.value
        if field.name == "grpc-status" { answers[stream]?.status = Int(field.value) }
      }
    case .reset: answers[stream, default: Answer()].reset = frame.payload.readInteger()
    case .settings where frame.header.flags & 1 == 0:
      settingsCount += 1
      while let parameter = frame.payload.readInteger(as: UInt16.self),
        let value = frame.payload.readInteger(as: UInt32.self)
      {
        if parameter == 4 { firstWindow = Int(value) }
      }
      try send(.settings, flags: 1, stream: 0)
    case .windowUpdate where stream == 0: credit += Int(frame.payload.readInteger(as: UInt32.self) ?? 0)
    case .windowUpdate: streamCredit[stream, default: 0] += Int(frame.payload.readInteger(as: UInt32.self) ?? 0)
    case .ping where frame.header.flags & 1 == 1: pingAnswers += 1
    case .ping:
      serverPing = frame.payload.readInteger()
      if answersPings, let serverPing { try ping(serverPing, isAnswer: true) }
    case .goAway:
      let (last, code) = (
        frame.payload.readInteger(as: UInt32.self) ?? 0, frame.payload.readInteger(as: UInt32.self) ?? 0
      )
      goAways.append((last, code, String(buffer: frame.payload)))
    default: break
    }
  }
}

/// Sends without raising a signal if the other end is closed.
private func sendBytes(_ bytes: UnsafeRawBufferPointer, to descriptor: CInt) -> Int {
  #if canImport(Darwin)
    send(descriptor, bytes.baseAddress, bytes.count, 0)
  #else
    send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
  #endif
}
