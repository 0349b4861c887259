internal import Logging
internal import NIOCore

/// Stands between a connection and its HTTP/2 handler, whose limits and drain cannot be set.
///
/// It reads the headers of frames and forwards most of them untouched, without copying. Those that the handler counts
/// against fixed limits it handles itself: it answers PING, drops PRIORITY, and hands RST_STREAM to the call's
/// `RequestGuard`. Frames of calls that have ended are dropped, as their client could not know. The drain of the
/// connection is its own (`ConnectionGuard+Drain`). <doc:UpstreamDefects> has the reasons.
final class ConnectionGuard: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = IOData
  typealias OutboundOut = IOData

  let limits: ConnectionLimits
  let inflation: InflationAllowance
  var context: ChannelHandlerContext?
  /// Calls under way, by stream.
  private(set) var requests: [UInt32: RequestGuard] = [:]
  /// The highest stream that the client has opened.
  private(set) var lastStream: UInt32 = 0
  var drain = Drain.none
  private(set) var isClosed = false
  /// The HTTP/2 handler has ended it, which it says to the client only.
  private(set) var hasFailed = false
  /// Nothing more is read of it.
  private var isCut = false

  private var pings: Allowance
  private var settings: Allowance
  private var resets: Allowance
  /// Bytes that are still to come of the frame, or of the preface, that is being read.
  private var rest = FrameHeader.prefaceByteCount
  private var isDropping = false
  /// Between a HEADERS frame and the last of its CONTINUATION frames nothing else may come.
  private var headers: HeaderContinuation?
  /// The beginning of a frame that is not there yet in full.
  private var buffered = ByteBuffer()
  /// Bytes of data that were dropped: the client may send as many again.
  private var dropped = 0
  private var needsFlush = false

  init(limits: ConnectionLimits, inflation: InflationAllowance) {
    self.limits = limits
    self.inflation = inflation
    let now = NIODeadline.now()
    pings = Allowance(limits.maxPings, per: .seconds(30), now: now)
    settings = Allowance(limits.maxSettings, per: .seconds(30), now: now)
    resets = Allowance(limits.maxResets, per: .seconds(10), now: now)
  }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }
  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  func channelInactive(context: ChannelHandlerContext) {
    isClosed = true
    context.fireChannelInactive()
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    pings.earn()
    if case .byteBuffer(let bytes) = unwrapOutboundIn(data), let header = FrameHeader(bytes, at: bytes.readerIndex),
      header.kind == .goAway, header.stream == 0, header.length == bytes.readableBytes - FrameHeader.byteCount
    {
      hasFailed = true
    }
    context.write(data, promise: promise)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard event is ChannelShouldQuiesceEvent else { return context.fireUserInboundEventTriggered(event) }
    beginDrain(context)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    if dropped > 0 {
      write(context) { $0.writeConnectionWindowUpdate(dropped) }
      dropped = 0
    }
    if needsFlush {
      needsFlush = false
      context.flush()
    }
    context.fireChannelReadComplete()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    if buffered.readableBytes > 0 {
      buffered.writeBuffer(&bytes)
      bytes = buffered
      buffered = ByteBuffer()
    }
    var reader = Reader(bytes: bytes)
    while !isOver, reader.index < bytes.writerIndex {
      if rest > 0 {
        let count = min(rest, bytes.writerIndex - reader.index)
        rest -= count
        reader.advance(count, isDropping: isDropping)
      } else {
        guard let header = FrameHeader(bytes, at: reader.index), take(header, &reader, context) else { break }
      }
    }
    forward(&reader, context)
    if !isOver { buffered = bytes.getSlice(at: reader.index, length: bytes.writerIndex - reader.index) ?? ByteBuffer() }
  }

  private var isOver: Bool { isClosed || isCut }

  /// Takes what begins with a header; `false` when more of it must come first.
  private func take(_ header: FrameHeader, _ reader: inout Reader, _ context: ChannelHandlerContext) -> Bool {
    switch judge(header, &reader, context) {
    case .forward:
      isDropping = false
      rest = header.length
      reader.advance(FrameHeader.byteCount, isDropping: false)
    case .drop:
      forward(&reader, context)
      isDropping = true
      rest = header.length
      reader.advance(FrameHeader.byteCount, isDropping: true)
    case .handle:
      let payload = reader.index + FrameHeader.byteCount
      guard reader.bytes.writerIndex - payload >= header.length else { return false }
      // What came before it, such as the beginning of the call that it ends, is handled before it.
      forward(&reader, context)
      guard !isOver else { return true }
      reader.advance(FrameHeader.byteCount + header.length, isDropping: true)
      handle(header, reader.bytes, payload, context)
    }
    return true
  }

  private enum Judgement { case forward, drop, handle }

  private func judge(_ header: FrameHeader, _ reader: inout Reader, _ context: ChannelHandlerContext) -> Judgement {
    // A frame of the wrong size, or in the wrong place, is the HTTP/2 handler's to refuse.
    if headers?.takes(header) == true { return .handle }
    if let frames = headers?.flush() {
      headers = nil
      forward(&reader, context)
      if frames.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(frames)) }
      return .forward
    }
    switch header.kind {
    case .headers:
      if header.flags & FrameHeader.endHeaders == 0 {
        headers = HeaderContinuation(stream: header.stream, maxFrameByteCount: limits.maxFrameByteCount)
      }
      lastStream = max(lastStream, header.stream)
      return .forward
    case .ping: return header.length == 8 && header.stream == 0 ? .handle : .forward
    case .priority: return header.length == 5 && header.stream > 0 ? .drop : .forward
    case .reset:
      return header.length == 4 && header.stream > 0 && header.stream <= lastStream ? .handle : .forward
    case .settings:
      if header.flags & FrameHeader.acknowledged == 0, !settings.take(now: .now()) { cut("too_many_settings", context) }
      return .forward
    case .data, .windowUpdate:
      guard header.stream > 0, header.stream <= lastStream, requests[header.stream] == nil else { return .forward }
      // It may be a call that begins with what is not yet forwarded.
      forward(&reader, context)
      guard requests[header.stream] == nil else { return .forward }
      if header.kind == .data { dropped += header.length }
      return .drop
    case .pushPromise, .goAway, .continuation, nil: return .forward
    }
  }

  private func handle(_ header: FrameHeader, _ bytes: ByteBuffer, _ payload: Int, _ context: ChannelHandlerContext) {
    if header.kind == .continuation {
      take(bytes.getSlice(at: payload, length: header.length), flags: header.flags, context)
    } else if header.kind == .ping {
      let data = bytes.getInteger(at: payload, as: UInt64.self) ?? 0
      if header.flags & FrameHeader.acknowledged != 0 {
        if case .begun(data) = drain { settleDrain(context) }
      } else if pings.take(now: .now()) {
        write(context) { $0.writePing(data, isAnswer: true) }
      } else {
        cut("too_many_pings", context)
      }
    } else if let request = requests[header.stream] {
      guard resets.take(now: .now()) else { return cut("too_many_resets", context) }
      request.clientReset(code: bytes.getInteger(at: payload, as: UInt32.self) ?? 0)
    }
  }

  private func take(_ continuation: ByteBuffer?, flags: UInt8, _ context: ChannelHandlerContext) {
    guard var continuation else { return }
    let isLast = flags & FrameHeader.endHeaders != 0
    let frames = headers?.push(&continuation, isLast: isLast)
    if isLast { headers = nil }
    if let frames, frames.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(frames)) }
  }

  private func forward(_ reader: inout Reader, _ context: ChannelHandlerContext) {
    guard let run = reader.takeRun(), !isOver else { return }
    context.fireChannelRead(wrapInboundOut(run))
  }

  /// Writes a frame past the HTTP/2 handler, which writes whole frames; flushed when what was read is done with.
  func write(_ context: ChannelHandlerContext, _ frame: (inout ByteBuffer) -> Void) {
    var buffer = context.channel.allocator.buffer(capacity: 64)
    frame(&buffer)
    context.write(wrapOutboundOut(.byteBuffer(buffer)), promise: nil)
    needsFlush = true
  }

  /// Ends the connection of a client that floods; `reason` is the word that gRPC clients know, where there is one.
  private func cut(_ reason: String, _ context: ChannelHandlerContext) {
    guard !isOver else { return }
    isCut = true
    limits.logger.notice("connection closed", metadata: ["reason": "\(reason)", "peer": "\(peer)"])
    write(context) { $0.writeGoAway(lastStream: lastStream, code: 11, reason: reason) }
    closeGently(context)
  }
}

extension ConnectionGuard {
  /// Reports a call that no handler has seen; its fault is the client's.
  func noteRefusal(_ refusal: RequestRefusal, path: String) {
    limits.logger.info(
      "call refused",
      metadata: [
        "method": "\(path.drop { $0 == "/" }.prefix(128))", "code": "\(refusal.code)", "error": "\(refusal.message)",
        "peer": "\(peer)",
      ])
  }

  private var peer: String { context?.remoteAddress.map(String.init(describing:)) ?? "" }

  /// Notes a call that begins; `false` when the client was told that it is not served any more.
  func begin(_ request: RequestGuard, stream: UInt32) -> Bool {
    requests[stream] = request
    return drain.accepts(stream)
  }

  /// - `wasReset`: whether the client cancelled it.
  func end(stream: UInt32, wasReset: Bool) {
    guard requests.removeValue(forKey: stream) != nil else { return }
    if !wasReset { resets.earn() }
    closeWhenDrained()
  }
}

/// What of the bytes read goes on in one piece.
private struct Reader {
  let bytes: ByteBuffer
  private(set) var index: Int
  private var runStart: Int

  init(bytes: ByteBuffer) {
    self.bytes = bytes
    index = bytes.readerIndex
    runStart = index
  }

  mutating func advance(_ count: Int, isDropping: Bool) {
    index += count
    if isDropping { runStart = index }
  }

  /// The bytes since the last ones that were taken or dropped.
  mutating func takeRun() -> ByteBuffer? {
    defer { runStart = index }
    return index > runStart ? bytes.getSlice(at: runStart, length: index - runStart) : nil
  }
}
