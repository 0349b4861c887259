internal import Logging
internal import NIOCore
internal import Synchronization

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
  var requests: [UInt32: RequestGuard] = [:]
  /// The highest stream identifier that the client has used.
  var lastStream: UInt32 = 0
  /// Calls on which the client may send nothing more, because it has ended or cancelled them.
  var ended = EndedStreams()
  var drain = Drain.none
  /// The reason of the drain, for the calls that it ends.
  var drainMessage = ""
  private(set) var isClosed = false
  /// Whether the HTTP/2 handler has ended the connection, which it reports only to the client.
  private(set) var hasFailed = false
  /// Whether the connection was cut; nothing more is read from it.
  private var isCut = false

  var pings: Allowance
  var settings: Allowance
  var resets: Allowance
  /// The allowance of frames that carry no call and have no allowance of their own.
  var controls: Allowance
  /// Bytes still expected of the current frame or of the preface.
  private var rest = FrameHeader.prefaceByteCount
  private var isDropping = false
  /// Set between a HEADERS frame and its last CONTINUATION frame, where no other frame is allowed.
  var headers: HeaderContinuation?
  /// The incomplete beginning of a frame.
  private var buffered = ByteBuffer()
  /// Number of dropped DATA bytes to return to the client's connection window.
  var dropped = 0
  private var needsFlush = false
  /// Bytes still expected of the frame that the HTTP/2 handler writes.
  private var payloadRest = 0

  /// The connection's name in the account of messages.
  let id = ConnectionGuard.nextID.add(1, ordering: .relaxed).newValue
  private static let nextID = Atomic<UInt64>(0)

  // MARK: Time

  var watch: ConnectionWatch
  var checkTask: RepeatedTask?
  var checked = NIODeadline.now()
  /// Whether bytes were received since the last check.
  var hasReceived = false
  /// `peerName`, once it is known.
  var knownPeerName: String?
  /// Whether the client has sent its settings.
  var hasHandshaken = false
  /// The peer for which the connection is counted.
  var countedHost: String?
  var isOccupying = false

  init(limits: ConnectionLimits, inflation: InflationAllowance, caller: ConnectionCaller?) {
    self.limits = limits
    self.inflation = inflation
    self.caller = caller
    let now = NIODeadline.now()
    watch = ConnectionWatch(limits: limits.time, now: now)
    pings = Allowance(limits.maxPings, per: .seconds(30), now: now)
    settings = Allowance(limits.maxSettings, per: .seconds(30), now: now)
    resets = Allowance(limits.maxResets, per: .seconds(10), now: now)
    controls = Allowance(limits.maxControls, per: .seconds(30), now: now)
  }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    close()
  }

  func channelActive(context: ChannelHandlerContext) {
    context.fireChannelActive()
    open(context)
  }

  func channelInactive(context: ChannelHandlerContext) {
    isClosed = true
    close()
    context.fireChannelInactive()
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    pings.earn()
    // A client may open two windows for each frame that it receives.
    controls.earn(2)
    guard case .byteBuffer(let bytes) = unwrapOutboundIn(data), !withholds(bytes) else {
      promise?.succeed()
      return
    }
    context.write(data, promise: promise)
  }

  /// Reads the header of a frame that the HTTP/2 handler writes; returns `true` for a frame that must not be sent now.
  private func withholds(_ bytes: ByteBuffer) -> Bool {
    if payloadRest > 0 {
      payloadRest -= bytes.readableBytes
      return false
    }
    guard let header = FrameHeader(bytes, at: bytes.readerIndex) else { return false }
    let end = FrameHeader.byteCount + header.length
    payloadRest = max(0, end - bytes.readableBytes)
    switch header.kind {
    case .goAway where header.stream == 0 && end == bytes.readableBytes: hasFailed = true
    case .windowUpdate where header.stream > 0:
      let increment = bytes.getInteger(at: bytes.readerIndex + FrameHeader.byteCount, as: UInt32.self)
      guard let increment, let request = requests[header.stream] else { return false }
      request.withhold(Int(increment))
      return true
    case .data: requests[header.stream]?.noteSent(header.length)
    default: break
    }
    return false
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard event is ChannelShouldQuiesceEvent else { return context.fireUserInboundEventTriggered(event) }
    beginDrain(context)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    if dropped > 0 {
      write(context) { $0.writeWindowUpdate(dropped) }
      dropped = 0
    }
    // Calls read their data now, and may open windows.
    context.fireChannelReadComplete()
    flush()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    hasReceived = true
    if buffered.readableBytes > 0 {
      buffered.writeBuffer(&bytes)
      bytes = buffered
      buffered = ByteBuffer()
    }
    var reader = ReceivedRuns(bytes: bytes)
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
    // A channel that closed while it was read reports no end of the read, for which the HTTP/2 handler keeps streams.
    if isClosed { context.fireChannelReadComplete() }
    if !isOver { buffered = bytes.getSlice(at: reader.index, length: bytes.writerIndex - reader.index) ?? ByteBuffer() }
  }

  var isOver: Bool { isClosed || isCut }

  /// Processes the frame with this header; returns `false` if more of the frame must arrive first.
  private func take(_ header: FrameHeader, _ reader: inout ReceivedRuns, _ context: ChannelHandlerContext) -> Bool {
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

  /// Lets the client send `byteCount` more bytes on a stream.
  func openWindow(of stream: UInt32, by byteCount: Int) {
    guard let context, !isOver else { return }
    write(context) { $0.writeWindowUpdate(byteCount, stream: stream) }
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
  func write(_ context: ChannelHandlerContext, _ frame: (inout ByteBuffer) -> Void) {
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
  func cut(_ reason: String, _ context: ChannelHandlerContext) {
    guard !isOver else { return }
    isCut = true
    limits.logger.notice("connection closed", metadata: ["reason": "\(reason)", "peer": "\(peer)"])
    write(context) { $0.writeGoAway(lastStream: lastStream, code: 11, reason: reason) }
    closeGently(context)
  }
}
