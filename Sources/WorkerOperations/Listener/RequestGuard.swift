internal import NIOCore
internal import NIOHPACK
internal import NIOHTTP2

/// Filters a call's stream before grpc-swift-2, which trusts client input and reports most errors in the same way.
///
/// It checks the request headers and the framing of messages, assembles and decompresses them
/// (`RequestGuard+Messages.swift`), answers refused calls, and ends the call when its client cancels it or its deadline
/// passes.
///
/// Needed with grpc-swift-2 2.4.3, which traps on timeouts and reports deadlines as cancellations, and with
/// grpc-swift-nio-transport 2.9.2, which receives messages into memory without a limit.
final class RequestGuard: ChannelDuplexHandler, NIOScheduledCallbackHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias InboundOut = HTTP2Frame.FramePayload
  typealias OutboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  enum State {
    case waiting
    case running
    /// The call was answered here or cancelled; nothing more is forwarded in either direction.
    case ended
  }

  /// How much of the response the transport has written.
  private enum Response {
    case none
    case begun
    case ended
  }

  /// The end of the client's messages.
  enum ClientEnd {
    case none
    /// It has arrived at the connection; frames before it may be unread.
    ///
    /// The HTTP/2 handler fails a call for which a window is opened then.
    case arrived
    case read
  }

  /// The known part of the first message.
  enum Expectation {
    /// It has arrived, or nobody asked for it.
    case none
    /// The worker has promised to process it; the promise lasts as long as the object.
    case promised(any Sendable & AnyObject)
    /// It is due, and its client has sent nothing for a while, so that the promise has ended.
    case overdue

    var isDue: Bool { if case .none = self { false } else { true } }
    var isPromised: Bool { if case .promised = self { true } else { false } }
  }

  let connection: ConnectionGuard
  let stream: UInt32
  private(set) var context: ChannelHandlerContext?
  private(set) var state = State.waiting
  private var deadline: NIOScheduledCallback?
  var framing = MessageFraming(isCompressed: false)
  private var path = ""
  private var isOperational = false
  private var response = Response.none
  private var wasReset = false

  /// The frames to the client that were written since the last flush.
  var unflushed = Unflushed.none

  // MARK: Messages

  var expectation = Expectation.none
  var inflater: MessageInflater?
  var assembler = MessageAssembler()
  /// Complete messages that the transport has not asked for yet.
  var ready = CircularBuffer<ByteBuffer>()
  /// Whether the call has sent a complete message.
  var hasReceivedMessage = false
  /// The identifier of the message that waits for memory.
  var waitingID: UInt64?
  /// Whether the transport asks for messages.
  var isWanted = false
  var clientEnd = ClientEnd.none
  var window: Window
  var progress = Progress()
  private var isOccupying = false

  init(connection: ConnectionGuard, stream: UInt32) {
    self.connection = connection
    self.stream = stream
    window = Window(connection.limits.streamWindowByteCount)
  }

  /// Installs a guard as the first handler of a call's channel; must be called on its event loop.
  static func install(on channel: any Channel) throws {
    guard let parent = channel.parent, let options = channel.syncOptions else { return }
    let connection = try parent.pipeline.syncOperations.handler(type: ConnectionGuard.self)
    let stream = try options.getOption(HTTP2StreamChannelOptions.streamID)
    try channel.pipeline.syncOperations.addHandler(
      RequestGuard(connection: connection, stream: UInt32(Int(stream))), position: .first)
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    guard !connection.begin(self, stream: stream) else { return }
    state = .ended
    // REFUSED_STREAM means that the call was not processed, so the client can safely retry it elsewhere.
    write(context, .rstStream(.refusedStream))
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    deadline?.cancel()
    releaseMessages()
    connection.end(stream: stream, wasReset: wasReset)
  }

  /// Notes that the end of the client's messages has arrived at the connection.
  func noteEndArrived() { if clientEnd == .none { clientEnd = .arrived } }

  func channelInactive(context: ChannelHandlerContext) {
    deadline?.cancel()
    releaseMessages()
    connection.end(stream: stream, wasReset: wasReset)
    context.fireChannelInactive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch (unwrapInboundIn(data), state) {
    case (_, .ended): return
    case (.headers(let payload), .waiting): begin(payload, context)
    case (.data(let payload), _): take(payload, context)
    case (let payload, _): context.fireChannelRead(wrapInboundOut(payload))
    }
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    if state == .ended {
      promise?.fail(ChannelError.ioOnClosedChannel)
      return
    }
    let frame = unwrapOutboundIn(data)
    if case .data(let payload) = frame { noteWritten(payload.data.readableBytes) }
    note(unflushed: frame)
    guard case .headers(var payload) = frame else { return context.write(data, promise: promise) }
    let isFirst = response == .none
    response = payload.endStream ? .ended : .begun
    guard isFirst else { return context.write(data, promise: promise) }
    payload.headers.add(name: "grpc-accept-encoding", value: RequestHeaders.encodings)
    context.write(wrapOutboundOut(.headers(payload)), promise: promise)
  }

  private func begin(_ payload: HTTP2Frame.FramePayload.Headers, _ context: ChannelHandlerContext) {
    state = .running
    if payload.endStream { clientEnd = .read }
    path = payload.headers.first(name: ":path") ?? ""
    var payload = payload
    do throws(RequestRefusal) {
      try occupy()
      let request = try RequestHeaders(
        payload.headers, now: .now(), maxByteCount: connection.limits.maxMetadataByteCount)
      if let compression = request.compression {
        inflater = try MessageInflater(
          compression, limit: connection.limits.maxMessageByteCount, allowance: connection.inflation)
        framing = MessageFraming(isCompressed: true)
      }
      isOperational = connection.limits.endedByDrain.contains { path.hasPrefix("/\($0)/") }
      payload.headers = request.headers
      if let caller = connection.caller {
        try caller.authenticator.identify(&payload.headers, path: path, caller: caller)
      }
      try admit(payload.headers, deadline: request.deadline)
      deadline = request.deadline?.end.flatMap {
        try? context.eventLoop.assumeIsolated().scheduleCallback(at: $0, handler: self)
      }
    } catch {
      return refuse(error)
    }
    context.fireChannelRead(wrapInboundOut(.headers(payload)))
    if let message = connection.drain.message { connectionDrains(message) }
  }

  private func write(_ context: ChannelHandlerContext, _ payload: HTTP2Frame.FramePayload) {
    context.writeAndFlush(wrapOutboundOut(payload), promise: nil)
  }
}

extension RequestGuard {
  /// Memory that a call takes, with its tasks, in bytes.
  private static var occupiedByteCount: Int { 16 << 10 }

  private func occupy() throws(RequestRefusal) {
    guard connection.limits.messages.occupy(Self.occupiedByteCount) else {
      throw .overloaded("too many calls are open")
    }
    isOccupying = true
  }

  /// Asks whether the call's message is worth receiving.
  private func admit(_ headers: HPACKHeaders, deadline: CallDeadline?) throws(RequestRefusal) {
    // Only an authenticated connection has an identity; otherwise the header is the client's own.
    let identity = connection.caller == nil ? nil : headers.first(name: IdentityInterceptor.key)
    let call = CallAdmission.Call(
      path: path, identity: identity, peer: connection.peerName, deadline: deadline?.clockInstant)
    switch connection.limits.calls.admit(call) {
    case .admitted(let promise): expectation = promise.map { .promised($0) } ?? .none
    case .refused(let message, let retryDelay):
      throw RequestRefusal(
        code: .resourceExhausted, message: message, reason: "OVERLOADED", retryDelay: retryDelay ?? .seconds(1))
    }
  }

  func vacate() {
    if isOccupying { connection.limits.messages.vacate(Self.occupiedByteCount) }
    isOccupying = false
  }

  /// Resets the stream of a client that does not read; it could not be sent a status.
  func cancel(reason: String) {
    guard state == .running, let context else { return }
    state = .ended
    releaseMessages()
    connection.noteRefusal(RequestRefusal(code: .resourceExhausted, message: reason), path: path)
    context.writeAndFlush(wrapOutboundOut(.rstStream(.enhanceYourCalm)), promise: nil)
    context.fireChannelRead(wrapInboundOut(.rstStream(.cancel)))
  }

  /// Handles the client's cancellation of the call.
  ///
  /// RST_STREAM is not forwarded to the HTTP/2 handler, which counts such frames; instead, the stream is closed from
  /// this end.
  func clientReset(code: UInt32) {
    guard let context else { return }
    wasReset = true
    let isRunning = state == .running
    state = .ended
    releaseMessages()
    if isRunning { context.fireChannelRead(wrapInboundOut(.rstStream(HTTP2ErrorCode(networkCode: Int(code))))) }
    context.close(promise: nil)
  }

  /// Ends calls to health watches and reflection, which otherwise run for as long as the client wants.
  func connectionDrains(_ message: String) {
    guard isOperational, state == .running, let context else { return }
    // Its handler may send a final response first, for which it has time on a busy machine, too.
    context.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    let loopBound = NIOLoopBound(self, eventLoop: context.eventLoop)
    context.eventLoop.scheduleTask(in: .seconds(2)) {
      loopBound.value.refuse(RequestRefusal(code: .unavailable, message: message))
    }
  }

  func handleScheduledCallback(eventLoop: some EventLoop) {
    end(RequestRefusal(code: .deadlineExceeded, message: CallDeadline.message))
  }

  /// Logs the refusal of a call that no interceptor sees, or that none reports, and ends the call.
  func refuse(_ refusal: RequestRefusal) {
    guard state == .running, response != .ended else { return }
    connection.noteRefusal(refusal, path: path)
    end(refusal)
  }

  /// Sends the status to the client and cancels the call for its handler.
  private func end(_ refusal: RequestRefusal) {
    guard state == .running, response != .ended, let context else { return }
    var headers = HPACKHeaders()
    if response == .none {
      headers.add(name: ":status", value: "200")
      headers.add(name: "content-type", value: "application/grpc")
      headers.add(name: "grpc-accept-encoding", value: RequestHeaders.encodings)
    }
    headers.add(name: "grpc-status", value: String(refusal.code.rawValue))
    headers.add(name: "grpc-message", value: refusal.wireMessage)
    if let details = refusal.wireDetails { headers.add(name: "grpc-status-details-bin", value: details) }
    state = .ended
    releaseMessages()
    context.write(wrapOutboundOut(.headers(.init(headers: headers, endStream: true))), promise: nil)
    // Stop the client from sending the rest of the upload.
    if clientEnd != .read { context.write(wrapOutboundOut(.rstStream(.noError)), promise: nil) }
    context.flush()
    context.fireChannelRead(wrapInboundOut(.rstStream(.cancel)))
  }
}
