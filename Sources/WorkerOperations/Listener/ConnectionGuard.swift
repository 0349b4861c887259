internal import Logging
internal import NIOCore
internal import Synchronization

/// Filters the frames of a connection before its HTTP/2 handler, whose limits and drain cannot be configured.
///
/// It reads frame headers and forwards most frames untouched, without copying. It handles the frames that the HTTP/2
/// handler counts against fixed limits: it answers PING, drops PRIORITY, and passes RST_STREAM to the call's
/// `RequestGuard`. Frames of ended calls are dropped, because the client could not know that the call had ended. It
/// also drains the connection (`ConnectionGuard+Drain`). <doc:UpstreamDefects> gives the reasons.
///
/// Needed with swift-nio-http2 1.46.0: its limits cannot be set, it counts frames of calls that have just ended as errors,
/// and its drain ends connections (issue 466).
final class ConnectionGuard: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundOut = IOData

  /// The life of a connection.
  enum Phase {
    /// Until the client has sent its settings.
    case handshake
    case open
    /// It was closed because of its client; nothing more is read from it.
    case cut
    case closed
  }

  /// The payload of the current frame, or the preface.
  private struct Payload {
    /// The number of bytes that have not arrived.
    var rest: Int
    var isDropped: Bool
    /// Whether padding may be at its end.
    var isPadded = false
  }

  let limits: ConnectionLimits
  let inflation: InflationAllowance
  /// The client; `nil` if callers are not identified.
  let caller: ConnectionCaller?
  /// The connection's name in the account of messages.
  let id = ConnectionGuard.nextID.add(1, ordering: .relaxed).newValue
  private static let nextID = Atomic<UInt64>(0)

  private(set) var context: ChannelHandlerContext?
  private(set) var phase = Phase.handshake
  var drain = Drain.none
  /// `peerName`, once it is known.
  var knownPeerName: String?

  // MARK: Calls

  /// Open calls by stream identifier.
  var requests: [UInt32: RequestGuard] = [:]
  /// The highest stream identifier that the client has used.
  var lastStream: UInt32 = 0
  /// The last streams on which the client may send nothing more, because it has ended or cancelled them.
  ///
  /// On a stream that the worker alone has ended, data may still be on its way.
  var ended = CircularBuffer<UInt32>()

  // MARK: Frames

  var allowances: FrameAllowances
  var firstWindow: FirstWindow
  private var payload = Payload(rest: FrameHeader.prefaceByteCount, isDropped: false)
  /// The incomplete beginning of a frame.
  private var buffered = ByteBuffer()
  /// Set between a HEADERS frame and its last CONTINUATION frame, where no other frame is allowed.
  var headers: HeaderContinuation?
  /// Number of dropped DATA bytes to return to the client's connection window.
  var dropped = 0
  private var needsFlush = false

  init(limits: ConnectionLimits, inflation: InflationAllowance, caller: ConnectionCaller?) {
    self.limits = limits
    self.inflation = inflation
    self.caller = caller
    allowances = FrameAllowances(limits, now: .now())
    firstWindow = FirstWindow(limits.streamWindowByteCount)
  }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  func channelInactive(context: ChannelHandlerContext) {
    phase = .closed
    context.fireChannelInactive()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard event is ChannelShouldQuiesceEvent else { return context.fireUserInboundEventTriggered(event) }
    beginDrain(message: "the worker is shutting down")
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    if dropped > 0 {
      write { $0.writeWindowUpdate(dropped) }
      dropped = 0
    }
    // Calls read their data now, and may open windows.
    context.fireChannelReadComplete()
    flush()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    if buffered.readableBytes > 0 {
      buffered.writeBuffer(&bytes)
      bytes = buffered
      buffered = ByteBuffer()
    }
    var reader = ReceivedRuns(bytes: bytes)
    while !isOver, reader.index < bytes.writerIndex {
      if payload.rest > 0 {
        let count = passableCount(bytes.writerIndex - reader.index)
        if count == 0 { break }
        payload.rest -= count
        reader.advance(count, isDropping: payload.isDropped)
      } else {
        guard let header = FrameHeader(bytes, at: reader.index), isPassable(header, reader) else { break }
        take(header, &reader, context)
      }
    }
    forward(&reader, context)
    // A channel that closed while it was read reports no end of the read, for which the HTTP/2 handler keeps streams.
    if phase == .closed { context.fireChannelReadComplete() }
    if !isOver { buffered = bytes.getSlice(at: reader.index, length: bytes.writerIndex - reader.index) ?? ByteBuffer() }
  }

  /// Whether enough of a frame has arrived to process it: all of it or, of DATA, its first byte.
  ///
  /// The parser of the HTTP/2 handler keeps what it has read until a read ends with a frame, or among the bytes of DATA.
  private func isPassable(_ header: FrameHeader, _ reader: ReceivedRuns) -> Bool {
    let arrived = reader.bytes.writerIndex - reader.index - FrameHeader.byteCount
    // Those are refused by their heads, or dropped.
    if header.length > limits.maxFrameByteCount || header.kind == nil { return true }
    if header.kind == .headers && header.length > limits.maxReadMetadataByteCount { return true }
    return arrived >= (header.kind == .data ? min(header.length, header.isPadded ? 2 : 1) : header.length)
  }

  /// Returns how many of `count` bytes of the payload that have arrived are passed on now.
  ///
  /// Padding waits until all of it has arrived: the parser also keeps what it has read where a read ends within padding.
  private func passableCount(_ count: Int) -> Int {
    guard payload.isPadded, count < payload.rest else { return min(count, payload.rest) }
    return min(count, max(0, payload.rest - FrameHeader.maxPaddingByteCount))
  }

  /// Whether nothing more is read from the connection.
  var isOver: Bool { phase == .cut || phase == .closed }

  func noteHandshake() { if phase == .handshake { phase = .open } }

  /// Processes a frame of which enough has arrived.
  private func take(_ header: FrameHeader, _ reader: inout ReceivedRuns, _ context: ChannelHandlerContext) {
    switch judge(header, &reader, context) {
    case .forward:
      payload = Payload(
        rest: header.length, isDropped: false, isPadded: header.kind == .data && header.isPadded)
      reader.advance(FrameHeader.byteCount, isDropping: false)
    case .drop:
      forward(&reader, context)
      payload = Payload(rest: header.length, isDropped: true)
      reader.advance(FrameHeader.byteCount, isDropping: true)
    case .handle:
      let payload = reader.index + FrameHeader.byteCount
      // Frames before this one, such as the beginning of the call that it resets, must be handled first.
      forward(&reader, context)
      guard !isOver else { return }
      reader.advance(FrameHeader.byteCount + header.length, isDropping: true)
      handle(header, reader.bytes, payload, context)
    }
  }

  func take(_ continuation: ByteBuffer?, flags: UInt8, _ context: ChannelHandlerContext) {
    guard var continuation else { return }
    let isLast = flags & FrameHeader.endHeaders != 0
    let frames = headers?.push(&continuation, isLast: isLast)
    if isLast { headers = nil }
    if let frames, frames.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(frames)) }
  }

  func forward(_ reader: inout ReceivedRuns, _ context: ChannelHandlerContext) {
    guard let run = reader.takeRun(), !isOver else { return }
    context.fireChannelRead(wrapInboundOut(run))
  }

  /// Writes a whole frame, bypassing the HTTP/2 handler; it is flushed at the end of the current read.
  func write(_ frame: (inout ByteBuffer) -> Void) {
    guard let context else { return }
    var buffer = context.channel.allocator.buffer(capacity: 64)
    frame(&buffer)
    context.write(wrapOutboundOut(.byteBuffer(buffer)), promise: nil)
    needsFlush = true
  }

  /// Sends the frames that were written since the last time.
  func flush() {
    guard needsFlush else { return }
    needsFlush = false
    context?.flush()
  }

  /// Closes the connection of a client that floods the worker.
  ///
  /// `reason` is sent in GOAWAY, with the spelling that gRPC clients recognize, if there is one.
  func cut(_ reason: String) {
    guard let context = end(reason) else { return }
    write { $0.writeGoAway(lastStream: lastStream, code: 11, reason: reason) }
    closeGently(context)
  }

  /// Notes that there is no room for a new connection, which is then closed: nothing is sent on it (`SentFrames`).
  ///
  /// A client that cannot connect fails its calls with UNAVAILABLE at once. After settings and GOAWAY, clients on gRPC's
  /// C library (1.85) let up to a third of their calls wait until their deadline.
  func refuse(_ reason: String) { _ = end(reason) }

  /// Reads and sends nothing more, logs the reason, and returns the context of a connection that is still open.
  private func end(_ reason: String) -> ChannelHandlerContext? {
    guard !isOver, let context else { return nil }
    phase = .cut
    limits.logger.notice("connection closed", metadata: ["reason": "\(reason)", "peer": "\(peerName)"])
    return context
  }
}

extension ConnectionGuard {
  /// The client's address in gRPC's notation, as `ServerContext.remotePeer` has it.
  ///
  /// A client on a Unix socket has the address of the socket that it connected to.
  var peerName: String {
    if let knownPeerName { return knownPeerName }
    let remote = context?.remoteAddress
    let name = Self.peerName(remote: remote, local: context?.localAddress)
    if remote != nil { knownPeerName = name }
    return name
  }

  /// Returns the name of the client of a connection between these addresses.
  static func peerName(remote: SocketAddress?, local: SocketAddress?) -> String {
    switch remote {
    case .v4(let address): "ipv4:\(address.host):\(remote?.port ?? 0)"
    case .v6(let address): "ipv6:[\(address.host)]:\(remote?.port ?? 0)"
    case .unixDomainSocket, nil: "unix:\([remote, local].compactMap { $0?.pathname }.first { !$0.isEmpty } ?? "")"
    }
  }

  /// Removes a call.
  ///
  /// - `wasReset`: whether the client cancelled it.
  /// - `wasServed`: whether the client has let it finish.
  func end(stream: UInt32, wasReset: Bool, wasServed: Bool) {
    guard let request = requests.removeValue(forKey: stream) else { return }
    if wasReset || request.messages.clientEnd != .none { noteEnded(stream) }
    if wasServed { allowances.earlyResets.earn() }
    closeWhenDrained()
  }

  /// Notes a stream that the client has ended or cancelled; 64 of them are remembered.
  func noteEnded(_ stream: UInt32) {
    if ended.count == 64 { ended.removeFirst() }
    ended.append(stream)
  }
}
