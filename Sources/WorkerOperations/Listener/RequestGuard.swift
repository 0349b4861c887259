internal import FoundationEssentials
internal import GRPCCore
internal import GRPCProtobuf
internal import NIOCore
internal import NIOHPACK
internal import NIOHTTP2

/// Filters a call's stream before grpc-swift-2, which trusts client input and reports most errors in the same way.
///
/// It checks the request headers and the framing of messages, decompresses them, answers refused calls, and ends the call
/// when its client cancels it or its deadline passes.
final class RequestGuard: ChannelDuplexHandler, NIOScheduledCallbackHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias InboundOut = HTTP2Frame.FramePayload
  typealias OutboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  private enum State {
    case waiting
    case running
    /// The call was answered here or cancelled; nothing more is forwarded in either direction.
    case ended
  }

  private let connection: ConnectionGuard
  private let stream: UInt32
  private var context: ChannelHandlerContext?
  private var state = State.waiting
  private var inflater: MessageInflater?
  private var deadline: NIOScheduledCallback?
  private var beginning: MessageBeginning
  private var framing = MessageFraming(isCompressed: false)
  private var path = ""
  private var isCompressed = false
  private var isOperational = false
  private var hasAnswered = false
  private var hasClientEnded = false
  private var hasServerEnded = false
  private var wasReset = false

  init(connection: ConnectionGuard, stream: UInt32) {
    self.connection = connection
    self.stream = stream
    beginning = MessageBeginning(maxByteCount: connection.limits.maxMessageByteCount)
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
    connection.end(stream: stream, wasReset: wasReset)
  }

  func channelInactive(context: ChannelHandlerContext) {
    inflater = nil
    deadline?.cancel()
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
    guard case .headers(var payload) = unwrapOutboundIn(data) else { return context.write(data, promise: promise) }
    hasServerEnded = payload.endStream
    guard !hasAnswered else { return context.write(data, promise: promise) }
    hasAnswered = true
    payload.headers.add(name: "grpc-accept-encoding", value: RequestHeaders.encodings)
    context.write(wrapOutboundOut(.headers(payload)), promise: promise)
  }

  private func begin(_ payload: HTTP2Frame.FramePayload.Headers, _ context: ChannelHandlerContext) {
    state = .running
    hasClientEnded = payload.endStream
    path = payload.headers.first(name: ":path") ?? ""
    var payload = payload
    do throws(RequestRefusal) {
      let request = try RequestHeaders(
        payload.headers, now: .now(), maxByteCount: connection.limits.maxMetadataByteCount)
      if let compression = request.compression {
        inflater = try MessageInflater(
          compression, limit: connection.limits.maxMessageByteCount, allowance: connection.inflation)
        isCompressed = true
        framing = MessageFraming(isCompressed: true)
      }
      isOperational = connection.limits.endedByDrain.contains { path.hasPrefix("/\($0)/") }
      payload.headers = request.headers
      if let caller = connection.caller {
        try caller.authenticator.identify(&payload.headers, path: path, caller: caller)
      }
      deadline = request.deadline?.end.flatMap {
        try? context.eventLoop.assumeIsolated().scheduleCallback(at: $0, handler: self)
      }
    } catch {
      return refuse(error)
    }
    context.fireChannelRead(wrapInboundOut(.headers(payload)))
    if connection.drain.hasBegun { connectionDrains() }
  }

  private func take(_ payload: HTTP2Frame.FramePayload.Data, _ context: ChannelHandlerContext) {
    hasClientEnded = payload.endStream
    guard case .byteBuffer(let bytes) = payload.data else {
      return context.fireChannelRead(wrapInboundOut(.data(payload)))
    }
    do throws(RequestRefusal) {
      try framing.push(bytes, isLast: payload.endStream)
    } catch {
      return refuse(error)
    }
    guard isCompressed else {
      guard let ready = beginning.push(bytes, isLast: payload.endStream) else { return }
      let data = HTTP2Frame.FramePayload.Data(data: .byteBuffer(ready), endStream: payload.endStream)
      return context.fireChannelRead(wrapInboundOut(.data(data)))
    }
    do throws(RequestRefusal) {
      guard let messages = try inflater?.push(bytes), messages.readableBytes > 0 || payload.endStream else { return }
      let inflated = HTTP2Frame.FramePayload.Data(data: .byteBuffer(messages), endStream: payload.endStream)
      context.fireChannelRead(wrapInboundOut(.data(inflated)))
    } catch {
      refuse(error)
    }
  }

  private func write(_ context: ChannelHandlerContext, _ payload: HTTP2Frame.FramePayload) {
    context.writeAndFlush(wrapOutboundOut(payload), promise: nil)
  }
}

extension RequestGuard {
  /// Handles the client's cancellation of the call.
  ///
  /// RST_STREAM is not forwarded to the HTTP/2 handler, which counts such frames; instead, the stream is closed from
  /// this end.
  func clientReset(code: UInt32) {
    guard let context else { return }
    wasReset = true
    let isRunning = state == .running
    state = .ended
    if isRunning { context.fireChannelRead(wrapInboundOut(.rstStream(HTTP2ErrorCode(networkCode: Int(code))))) }
    context.close(promise: nil)
  }

  /// Ends calls to health watches and reflection, which otherwise run for as long as the client wants.
  func connectionDrains() {
    guard isOperational, state == .running, let context else { return }
    // Its handler may send a final response first.
    context.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    let loopBound = NIOLoopBound(self, eventLoop: context.eventLoop)
    context.eventLoop.scheduleTask(in: .milliseconds(200)) {
      loopBound.value.refuse(RequestRefusal(code: .unavailable, message: "the worker is shutting down"))
    }
  }

  func handleScheduledCallback(eventLoop: some EventLoop) {
    end(RequestRefusal(code: .deadlineExceeded, message: CallDeadline.message))
  }

  /// Logs the refusal of a call that no interceptor sees, or that none reports, and ends the call.
  private func refuse(_ refusal: RequestRefusal) {
    guard state == .running, !hasServerEnded else { return }
    connection.noteRefusal(refusal, path: path)
    end(refusal)
  }

  /// Sends the status to the client and cancels the call for its handler.
  private func end(_ refusal: RequestRefusal) {
    guard state == .running, !hasServerEnded, let context else { return }
    var headers = HPACKHeaders()
    if !hasAnswered {
      headers.add(name: ":status", value: "200")
      headers.add(name: "content-type", value: "application/grpc")
      headers.add(name: "grpc-accept-encoding", value: RequestHeaders.encodings)
    }
    headers.add(name: "grpc-status", value: String(refusal.code.rawValue))
    headers.add(name: "grpc-message", value: refusal.wireMessage)
    if let details = refusal.wireDetails { headers.add(name: "grpc-status-details-bin", value: details) }
    state = .ended
    context.write(wrapOutboundOut(.headers(.init(headers: headers, endStream: true))), promise: nil)
    // Stop the client from sending the rest of the upload.
    if !hasClientEnded { context.write(wrapOutboundOut(.rstStream(.noError)), promise: nil) }
    context.flush()
    context.fireChannelRead(wrapInboundOut(.rstStream(.cancel)))
  }
}

extension RequestRefusal {
  /// A `google.rpc.Status` with the reason, in Base64; `nil` without a reason.
  fileprivate var wireDetails: String? {
    guard let reason, let code = Status.Code(rawValue: code.rawValue).flatMap({ RPCError.Code($0) }) else { return nil }
    let status = GoogleRPCStatus(
      code: code, message: message, details: [.errorInfo(reason: reason, domain: "imageworker.v1")])
    guard let bytes: [UInt8] = try? status.serializedBytes() else { return nil }
    return Data(bytes).base64EncodedString()
  }

  /// The message, percent-encoded as the gRPC specification requires.
  fileprivate var wireMessage: String {
    message.utf8.reduce(into: "") { text, byte in
      if (0x20...0x7e).contains(byte), byte != UInt8(ascii: "%") {
        text.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
    }
  }
}
