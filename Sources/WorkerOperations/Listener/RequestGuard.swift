internal import GRPCCore
internal import NIOCore
internal import NIOHPACK
internal import NIOHTTP2
internal import WorkThreads

/// Filters a call's stream before grpc-swift-2, which trusts client input and reports most errors in the same way.
///
/// It checks the request headers, answers refused calls, and ends the call when its client cancels it or its deadline
/// passes. `MessageReceiver` and `ResponseFlush` follow it in the pipeline of the stream.
///
/// Needed with grpc-swift-2 2.4.3, which traps on timeouts and reports deadlines as cancellations.
final class RequestGuard: ChannelDuplexHandler, NIOScheduledCallbackHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias InboundOut = HTTP2Frame.FramePayload
  typealias OutboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  /// The life of a call.
  private enum Phase {
    /// Until its headers arrive.
    case waiting
    case running(Response)
    /// The call was answered here or cancelled; nothing more is forwarded in either direction.
    case ended
  }

  /// How much of the response the transport has written.
  private enum Response {
    case none
    case begun
    case ended
  }

  let messages: MessageReceiver
  private let connection: ConnectionGuard
  private let stream: UInt32
  private var context: ChannelHandlerContext?
  private var phase = Phase.waiting
  private var path = ""
  private var report: CallReport?
  private var deadline: NIOScheduledCallback?
  /// The charge of the memory that a call takes, with its tasks.
  private var occupation: Claim?
  var progress = ResponseProgress()
  private var wasReset = false
  /// Whether the worker was ending at the last check.
  private var isEnding = false

  init(connection: ConnectionGuard, stream: UInt32) {
    self.connection = connection
    self.stream = stream
    messages = MessageReceiver(connection: connection, stream: stream)
  }

  /// Installs a guard and what follows it as the first handlers of a call's channel; must be called on its event loop.
  static func install(on channel: any Channel) throws {
    guard let parent = channel.parent, let options = channel.syncOptions else { return }
    let connection = try parent.pipeline.syncOperations.handler(type: ConnectionGuard.self)
    let stream = try options.getOption(HTTP2StreamChannelOptions.streamID)
    let guarded = RequestGuard(connection: connection, stream: UInt32(Int(stream)))
    try channel.pipeline.syncOperations.addHandlers(guarded, guarded.messages, ResponseFlush(), position: .first)
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    connection.requests[stream] = self
    // One that arrived after the last call that is served.
    guard !connection.drain.accepts(stream) else { return }
    phase = .ended
    // REFUSED_STREAM means that the call was not processed, so the client can safely retry it elsewhere.
    context.writeAndFlush(wrapOutboundOut(.rstStream(.refusedStream)), promise: nil)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    leave()
  }

  func channelInactive(context: ChannelHandlerContext) {
    leave()
    context.fireChannelInactive()
  }

  /// Ends what the call has begun, when its stream is closed.
  private func leave() {
    deadline?.cancel()
    messages.end()
    // A client that has gone with its connection has not reset the call.
    if case .running(let response) = phase, response != .ended { report?.record.noteClientGone() }
    report?.end(peer: connection.peerName)
    // The transport has sent the whole response.
    let wasServed = if case .running(.ended) = phase { !wasReset } else { false }
    connection.end(stream: stream, wasReset: wasReset, wasServed: wasServed)
    occupation = nil
  }

  /// The time since the call's headers have arrived; zero before.
  var age: Duration { report.map { $0.began.duration(to: .now) } ?? .zero }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch (unwrapInboundIn(data), phase) {
    case (_, .ended): return
    case (.headers(let payload), .waiting): begin(payload, context)
    default: context.fireChannelRead(data)
    }
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    if case .ended = phase {
      promise?.fail(ChannelError.ioOnClosedChannel)
      return
    }
    switch unwrapOutboundIn(data) {
    case .headers(var payload):
      guard case .running(let response) = phase else { return context.write(data, promise: promise) }
      phase = .running(payload.endStream ? .ended : .begun)
      if payload.endStream { report?.note(trailers: payload.headers) }
      if response == .none { payload.headers.add(name: "grpc-accept-encoding", value: RequestHeaders.encodings) }
      // The stream of a client that does not end its own would stay open.
      let needsReset = payload.endStream && messages.clientEnd == .none
      write(.headers(payload), thenReset: needsReset, context, promise)
    case .data(let payload):
      progress.noteWritten(payload.data.readableBytes)
      context.write(data, promise: promise)
    default: context.write(data, promise: promise)
    }
  }

  /// Writes headers, and resets the stream once they are sent: the HTTP/2 handler sends a reset before what waits.
  private func write(
    _ headers: HTTP2Frame.FramePayload, thenReset needsReset: Bool, _ context: ChannelHandlerContext,
    _ promise: EventLoopPromise<Void>?
  ) {
    guard needsReset else { return context.write(wrapOutboundOut(headers), promise: promise) }
    let sent = promise ?? context.eventLoop.makePromise(of: Void.self)
    sent.futureResult.assumeIsolated().whenSuccess { [weak self] in
      guard let self, let context = self.context else { return }
      context.writeAndFlush(wrapOutboundOut(.rstStream(.noError)), promise: nil)
    }
    context.write(wrapOutboundOut(headers), promise: sent)
  }

  func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
    guard let refusal = event as? RequestRefusal else {
      return context.triggerUserOutboundEvent(event, promise: promise)
    }
    refuse(refusal)
    promise?.succeed()
  }

  private func begin(_ payload: HTTP2Frame.FramePayload.Headers, _ context: ChannelHandlerContext) {
    phase = .running(.none)
    if payload.endStream { messages.clientEnd = .read }
    path = payload.headers.first(name: ":path") ?? ""
    // The transport takes a part of a path with commas for the method.
    let isPlain =
      path.utf8.count <= 256 && path.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ",") }
    if !isPlain { path = "" }
    report = CallReport(connection.limits.callLog, path: path)
    var payload = payload
    do throws(RequestRefusal) {
      guard isPlain else { throw RequestRefusal(code: .unimplemented, message: "the path names no method") }
      guard connection.allowances.earlyResets.remains(now: .now()) else {
        throw .overloaded("too many calls of the connection were cancelled as soon as they began")
      }
      occupation = connection.limits.messages.occupy(
        Self.occupiedByteCount, isFirst: connection.requests.count == 1)
      guard occupation != nil else { throw .overloaded("too many calls are open") }
      let request = try RequestHeaders(
        payload.headers, now: .now(), maxByteCount: connection.limits.maxMetadataByteCount)
      try messages.begin(path: path, request.compression)
      payload.headers = request.headers
      let name = try connection.caller?.identify(&payload.headers, path: path)
      try admit(name, deadline: request.deadline)
      report?.accept(&payload.headers, deadline: request.deadline, callerName: name)
      deadline = request.deadline?.end.flatMap {
        try? context.eventLoop.assumeIsolated().scheduleCallback(at: $0, handler: self)
      }
    } catch {
      return refuse(error)
    }
    forward(payload, context)
    if let message = connection.drain.message { connectionDrains(message) }
  }

  /// Passes on the headers of a call.
  ///
  /// grpc-swift-nio-transport 2.9.2 waits for ever for the end of messages after headers that are the end themselves, so an
  /// empty frame ends them instead.
  private func forward(_ payload: HTTP2Frame.FramePayload.Headers, _ context: ChannelHandlerContext) {
    var headers = payload
    headers.endStream = false
    context.fireChannelRead(wrapInboundOut(.headers(headers)))
    guard payload.endStream, case .running = phase else { return }
    context.fireChannelRead(wrapInboundOut(.data(.init(data: .byteBuffer(ByteBuffer()), endStream: true))))
  }
}

extension RequestGuard {
  /// Memory that a call takes, with its tasks, in bytes.
  private static var occupiedByteCount: Int { 16 << 10 }

  /// Asks whether the call's message is worth receiving.
  private func admit(_ callerName: String?, deadline: CallDeadline?) throws(RequestRefusal) {
    let call = CallAdmission.Call(
      path: path, identity: callerName, connection: connection.id, peer: connection.peerName,
      deadline: deadline?.clockInstant)
    switch connection.limits.calls.admit(call) {
    case .admitted(let promise): messages.expectation = promise.map { .promised($0) } ?? .none
    case .refused(let message, let retryDelay):
      connection.noteLoad()
      throw RequestRefusal(
        code: .resourceExhausted, message: message, reason: "OVERLOADED", retryDelay: retryDelay ?? .seconds(1))
    }
  }

  /// Ends the call if its client sends its messages or reads its results too slowly, or if the worker ends.
  func check(elapsed: Duration) {
    if case .ended = phase {
      // The status may wait behind results that the client does not read.
      if progress.check(elapsed: elapsed, limits: connection.limits.time) {
        context?.writeAndFlush(wrapOutboundOut(.rstStream(.enhanceYourCalm)), promise: nil)
      }
      return
    }
    guard case .running = phase else { return }
    if connection.limits.isEnding() {
      // Handlers were cancelled before the last check and have answered; a call whose message never arrived has none.
      if isEnding { return refuse(.draining) }
      isEnding = true
    }
    messages.check(elapsed: elapsed)
    guard progress.check(elapsed: elapsed, limits: connection.limits.time) else { return }
    cancel()
  }

  /// Resets the stream of a client that does not read; it could not be sent a status.
  private func cancel() {
    guard case .running = phase, let context else { return }
    phase = .ended
    messages.end()
    report?.record.note(
      RequestRefusal(code: .resourceExhausted, message: "the client reads its results too slowly"))
    context.writeAndFlush(wrapOutboundOut(.rstStream(.enhanceYourCalm)), promise: nil)
    context.fireChannelRead(wrapInboundOut(.rstStream(.cancel)))
  }

  /// Handles the client's cancellation of the call.
  ///
  /// RST_STREAM is not forwarded to the HTTP/2 handler, which counts such frames; instead, the stream is closed from
  /// this end, if `closesStream`.
  func clientReset(code: UInt32, closesStream: Bool) {
    guard let context else { return }
    wasReset = true
    let before = phase
    if case .running(let response) = before, response != .ended { report?.record.noteClientGone() }
    phase = .ended
    messages.end()
    if case .running = before {
      context.fireChannelRead(wrapInboundOut(.rstStream(HTTP2ErrorCode(networkCode: Int(code)))))
    }
    if closesStream { context.close(promise: nil) }
  }

  /// Ends calls to health watches and reflection, which otherwise run for as long as the client wants.
  func connectionDrains(_ message: String) {
    guard case .running = phase, let context else { return }
    guard connection.limits.endedByDrain.contains(where: { path.hasPrefix("/\($0)/") }) else { return }
    // Its handler may send a final response first, for which it has time on a busy machine, too.
    context.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    let loopBound = NIOLoopBound(self, eventLoop: context.eventLoop)
    context.eventLoop.scheduleTask(in: .seconds(2)) {
      loopBound.value.refuse(RequestRefusal(code: .unavailable, message: message))
    }
  }

  func handleScheduledCallback(eventLoop: some EventLoop) {
    refuse(RequestRefusal(code: .deadlineExceeded, message: CallDeadline.message))
  }

  /// Sends the status to the client and cancels the call for its handler.
  private func refuse(_ refusal: RequestRefusal) {
    guard case .running(let response) = phase, response != .ended, let context else { return }
    report?.record.note(refusal)
    var headers = HPACKHeaders()
    if response == .none {
      headers.add(name: ":status", value: "200")
      headers.add(name: "content-type", value: "application/grpc")
      headers.add(name: "grpc-accept-encoding", value: RequestHeaders.encodings)
    }
    headers.add(name: "grpc-status", value: String(refusal.code.rawValue))
    headers.add(name: "grpc-message", value: refusal.wireMessage)
    // The delay of the details, as gRPC's own retries read it (gRFC A6).
    if let delay = refusal.retryDelay {
      headers.add(name: "grpc-retry-pushback-ms", value: String(delay.wholeNanoseconds / 1_000_000))
    }
    if let details = refusal.wireDetails { headers.add(name: "grpc-status-details-bin", value: details) }
    phase = .ended
    messages.end()
    // The reset stops the client from sending the rest of the upload.
    write(
      .headers(.init(headers: headers, endStream: true)), thenReset: messages.clientEnd != .read, context, nil)
    context.flush()
    context.fireChannelRead(wrapInboundOut(.rstStream(.cancel)))
  }
}
