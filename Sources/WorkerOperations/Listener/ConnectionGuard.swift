internal import Logging
internal import NIOCore

/// Filters the frames of a connection before its HTTP/2 handler, whose limits and drain cannot be configured.
///
/// It reads frame headers and forwards most frames untouched, without copying. It handles the frames that the HTTP/2
/// handler counts against fixed limits: it answers PING, drops PRIORITY, and passes RST_STREAM to the call's
/// `RequestGuard`. Frames of ended calls are dropped, because the client could not know that the call had ended. It
/// also drains the connection (`ConnectionGuard+Drain`). <doc:UpstreamDefects> gives the reasons.
final class ConnectionGuard: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = IOData
  typealias OutboundOut = IOData

  let limits: ConnectionLimits
  let inflation: InflationAllowance
  /// The client; `nil` if callers are not identified.
  let caller: ConnectionCaller?
  var context: ChannelHandlerContext?
  /// Open calls by stream identifier.
  private(set) var requests: [UInt32: RequestGuard] = [:]
  /// The highest stream identifier that the client has used.
  private(set) var lastStream: UInt32 = 0
  var drain = Drain.none
  private(set) var isClosed = false
  /// Whether the HTTP/2 handler has ended the connection, which it reports only to the client.
  private(set) var hasFailed = false
  /// Whether the connection was cut; nothing more is read from it.
  private var isCut = false

  private var pings: Allowance
  private var settings: Allowance
  private var resets: Allowance
  /// Bytes still expected of the current frame or of the preface.
  private var rest = FrameHeader.prefaceByteCount
  private var isDropping = false
  /// Set between a HEADERS frame and its last CONTINUATION frame, where no other frame is allowed.
  private var headers: HeaderContinuation?
  /// The incomplete beginning of a frame.
  private var buffered = ByteBuffer()
  /// Number of dropped DATA bytes to return to the client's connection window.
  private var dropped = 0
  private var needsFlush = false

  init(limits: ConnectionLimits, inflation: InflationAllowance, caller: ConnectionCaller?) {
    self.limits = limits
    self.inflation = inflation
    self.caller = caller
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

  /// Processes the frame with this header; returns `false` if more of the frame must arrive first.
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
      // Frames before this one, such as the beginning of the call that it resets, must be handled first.
      forward(&reader, context)
      guard !isOver else { return true }
      reader.advance(FrameHeader.byteCount + header.length, isDropping: true)
      handle(header, reader.bytes, payload, context)
    }
    return true
  }

  private enum Judgement { case forward, drop, handle }

  private func judge(_ header: FrameHeader, _ reader: inout Reader, _ context: ChannelHandlerContext) -> Judgement {
    // The HTTP/2 handler rejects frames with a wrong size or in a wrong place.
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
      // The frame may belong to a call whose beginning is not forwarded yet.
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

  /// Writes a whole frame, bypassing the HTTP/2 handler; it is flushed at the end of the current read.
  func write(_ context: ChannelHandlerContext, _ frame: (inout ByteBuffer) -> Void) {
    var buffer = context.channel.allocator.buffer(capacity: 64)
    frame(&buffer)
    context.write(wrapOutboundOut(.byteBuffer(buffer)), promise: nil)
    needsFlush = true
  }

  /// Closes the connection of a client that floods the worker.
  ///
  /// `reason` is sent in GOAWAY, with the spelling that gRPC clients recognize, if there is one.
  private func cut(_ reason: String, _ context: ChannelHandlerContext) {
    guard !isOver else { return }
    isCut = true
    limits.logger.notice("connection closed", metadata: ["reason": "\(reason)", "peer": "\(peer)"])
    write(context) { $0.writeGoAway(lastStream: lastStream, code: 11, reason: reason) }
    closeGently(context)
  }
}

extension ConnectionGuard {
  /// Logs a call that was refused before it reached a handler, because of a client error.
  func noteRefusal(_ refusal: RequestRefusal, path: String) {
    limits.logger.info(
      "call refused",
      metadata: [
        "method": "\(path.drop { $0 == "/" }.prefix(128))", "code": "\(refusal.code)", "error": "\(refusal.message)",
        "peer": "\(peer)",
      ])
  }

  private var peer: String { context?.remoteAddress.map(String.init(describing:)) ?? "" }

  /// Registers a call that begins; returns `false` if it arrived after the last call that is served.
  func begin(_ request: RequestGuard, stream: UInt32) -> Bool {
    requests[stream] = request
    return drain.accepts(stream)
  }

  /// Removes a call; `wasReset` is whether the client cancelled it.
  func end(stream: UInt32, wasReset: Bool) {
    guard requests.removeValue(forKey: stream) != nil else { return }
    if !wasReset { resets.earn() }
    closeWhenDrained()
  }
}

/// A cursor over received bytes that collects contiguous runs to forward.
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

  /// Returns the bytes since the last bytes that were returned or dropped; `nil` if there are none.
  mutating func takeRun() -> ByteBuffer? {
    defer { runStart = index }
    return index > runStart ? bytes.getSlice(at: runStart, length: index - runStart) : nil
  }
}
