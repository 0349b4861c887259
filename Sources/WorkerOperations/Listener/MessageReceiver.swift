internal import NIOCore
internal import NIOHTTP2
internal import WorkThreads

/// Receives the messages of a call: each is charged from its length prefix, and the client may send more than
/// `Window.idle` bytes only of one that is charged.
///
/// A refusal travels to the `RequestGuard` as an outbound event.
///
/// Needed with grpc-swift-nio-transport 2.9.2, which receives messages into memory without a limit.
final class MessageReceiver: ChannelDuplexHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias InboundOut = HTTP2Frame.FramePayload
  typealias OutboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

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

  /// The number of messages that are passed on in one turn of the event loop; each takes a few microseconds.
  private static let turnCount = 256
  /// The number of messages that are assembled ahead; one without bytes needs twenty times the memory of its prefix.
  private static let readyCount = 16

  let connection: ConnectionGuard
  let stream: UInt32
  private(set) var context: ChannelHandlerContext?
  /// Whether the call has ended, so that nothing more is received.
  private(set) var isOver = false
  var clientEnd = ClientEnd.none
  var expectation = Expectation.none

  /// The limit on each message, once the method is known.
  private var limit = MessageLimit(byteCount: 0, readByteCount: 0)
  /// Whether the client may send any number of messages.
  private(set) var isStreaming = true
  private var framing = MessageFraming(isCompressed: false)
  private var inflater: MessageInflater?
  /// Whether work goes on in a later turn of the event loop, so that other calls have theirs.
  private(set) var isResting = false
  private(set) var assembler = MessageAssembler()
  /// Complete messages that the transport has not asked for yet.
  private(set) var ready = CircularBuffer<ByteBuffer>()
  /// Whether the call has sent a complete message.
  private var hasReceivedMessage = false
  /// The number of bytes that the first message still misses, if it was charged and is not complete.
  private var missingByteCount = 0
  /// The identifier of the message that waits for memory.
  private(set) var waitingID: UInt64?
  /// Whether the transport asks for messages.
  private var isWanted = false
  var window: Window
  var progress = Progress()

  init(connection: ConnectionGuard, stream: UInt32) {
    self.connection = connection
    self.stream = stream
    window = Window(connection.firstWindow.byteCount)
  }

  /// Whether no message has begun.
  var isBetweenMessages: Bool { inflater?.isBetweenMessages ?? assembler.isEmpty }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  /// Begins to receive messages of a method with the call's compression.
  func begin(path: String, _ compression: MessageInflater.Format?) throws(RequestRefusal) {
    limit = connection.limits.messageLimit(path: path)
    isStreaming = connection.limits.isStreaming(path: path)
    guard let compression else { return }
    inflater = try MessageInflater(compression, limit: limit, allowance: connection.inflation)
    framing = MessageFraming(isCompressed: true)
  }

  /// Notes that the end of the client's messages has arrived at the connection.
  func noteEndArrived() { if clientEnd == .none { clientEnd = .arrived } }

  /// Releases the messages of a call that has ended.
  func end() {
    isOver = true
    if missingByteCount > 0 { connection.limits.messages.noteAbandoned(missingByteCount, of: connection.id) }
    missingByteCount = 0
    expectation = .none
    inflater = nil
    assembler = MessageAssembler()
    ready.removeAll()
    window.charge = nil
    guard let id = waitingID else { return }
    waitingID = nil
    // If it was charged before, `grant` follows.
    _ = connection.limits.messages.abandonMessage(id)
  }

  /// Ends the call, which `RequestGuard` answers.
  func refuse(_ refusal: RequestRefusal) {
    guard !isOver else { return }
    context?.triggerUserOutboundEvent(refusal, promise: nil)
  }

  // MARK: Bytes

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .data(let payload): push(payload, context)
    default: context.fireChannelRead(data)
    }
  }

  private func push(_ payload: HTTP2Frame.FramePayload.Data, _ context: ChannelHandlerContext) {
    if payload.endStream { clientEnd = .read }
    guard case .byteBuffer(let bytes) = payload.data else { return }
    window.byteCount -= bytes.readableBytes + (payload.paddingBytes.map { $0 + 1 } ?? 0)
    progress.receivedByteCount += bytes.readableBytes
    do throws(RequestRefusal) {
      try framing.push(bytes, isLast: payload.endStream)
      if inflater != nil { inflater?.push(bytes) } else { assembler.push(bytes) }
      try read(context)
    } catch {
      return refuse(error)
    }
    noteArrival()
    deliver(context)
    adjustWindow(context)
  }

  /// Reads messages from the received bytes.
  private func read(_ context: ChannelHandlerContext) throws(RequestRefusal) {
    if inflater != nil { try inflate(context) } else { try assemble(context) }
  }

  /// Reports what has arrived of the first message.
  private func noteArrival() {
    let left = hasReceivedMessage ? 0 : assembler.missingByteCount
    guard missingByteCount > left else { return }
    connection.limits.messages.noteReceived(missingByteCount - left, of: connection.id, isLast: left == 0)
    missingByteCount = left
  }

  /// Assembles messages until enough are ready, one waits for memory, or more bytes are needed.
  private func assemble(_ context: ChannelHandlerContext) throws(RequestRefusal) {
    defer { assembler.keep() }
    while ready.count < Self.readyCount {
      switch assembler.next() {
      case .message(let message):
        hasReceivedMessage = true
        ready.append(message)
      case .needsMemory(let byteCount): if try !admit(byteCount, context) { return }
      case .needsBytes: return
      }
    }
  }

  /// Decompresses messages until enough are ready or more bytes are needed, in several turns of the event loop if that
  /// takes long.
  private func inflate(_ context: ChannelHandlerContext) throws(RequestRefusal) {
    while !isResting, ready.count < Self.readyCount {
      switch try inflater?.next() {
      case .message(let message): ready.append(message)
      case .needsTime: return rest(context)
      case .needsBytes, nil: return
      }
    }
  }

  private func rest(_ context: ChannelHandlerContext) {
    isResting = true
    let loopBound = NIOLoopBound(self, eventLoop: context.eventLoop)
    context.eventLoop.execute { loopBound.value.continueAfterRest() }
  }

  private func continueAfterRest() {
    isResting = false
    guard let context, !isOver else { return }
    do throws(RequestRefusal) { try read(context) } catch {
      return refuse(error)
    }
    noteArrival()
    resume(context)
  }

  /// Requests the memory of a message; returns `false` if it must wait.
  private func admit(_ byteCount: Int, _ context: ChannelHandlerContext) throws(RequestRefusal) -> Bool {
    let limits = connection.limits
    let length = byteCount - MessageAssembler.prefixByteCount
    guard length <= limit.readByteCount else { throw limit.refusal(length) }
    let loopBound = NIOLoopBound(self, eventLoop: context.eventLoop)
    let loop = context.eventLoop
    let isContinuation = hasReceivedMessage
    let admission = limits.messages.admit(
      MessageRequest(
        byteCount: byteCount, connection: connection.id, isContinuation: isContinuation,
        bufferedByteCount: min(byteCount, window.idle)
      ) { loop.execute { loopBound.value.grant(byteCount, isContinuation: isContinuation) } })
    switch admission {
    case .granted:
      try begin(byteCount, isContinuation: isContinuation)
      return true
    case .waiting(let id):
      if !isContinuation { connection.noteLoad() }
      waitingID = id
      return false
    case .full: throw .overloaded("too many messages are waiting for memory")
    case .tooLarge(let limit): throw .tooLarge(.init(name: "memory_limit", limit: limit, value: length))
    }
  }

  private func begin(_ byteCount: Int, isContinuation: Bool) throws(RequestRefusal) {
    let charge = Claim { [memory = connection.limits.messages, id = connection.id] in
      memory.releaseMessage(byteCount, of: id, isContinuation: isContinuation)
    }
    if !isContinuation { missingByteCount = byteCount }
    guard let memory = ByteBuffer.charged(capacity: byteCount, charge: charge) else {
      throw .overloaded("there is no memory for the message")
    }
    assembler.begin(memory, byteCount: byteCount)
  }

  /// Continues with a message that was charged after it had waited.
  private func grant(_ byteCount: Int, isContinuation: Bool) {
    guard let context, !isOver, waitingID != nil else {
      if !isContinuation { connection.limits.messages.noteAbandoned(byteCount, of: connection.id) }
      return connection.limits.messages.releaseMessage(
        byteCount, of: connection.id, isContinuation: isContinuation)
    }
    waitingID = nil
    do throws(RequestRefusal) {
      try begin(byteCount, isContinuation: isContinuation)
      try assemble(context)
    } catch {
      return refuse(error)
    }
    noteArrival()
    resume(context)
  }

  // MARK: Delivery

  /// Delivers what is complete, outside of a read of the connection.
  private func resume(_ context: ChannelHandlerContext) {
    deliver(context)
    context.fireChannelReadComplete()
    adjustWindow(context)
    connection.flush()
  }

  func read(context: ChannelHandlerContext) {
    isWanted = true
    if !ready.isEmpty, !isResting { resume(context) }
    context.read()
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    isWanted = false
    context.fireChannelReadComplete()
    // Bytes are read even while the transport wants none: unread ones would keep the buffers that they arrived in.
    context.read()
  }

  /// Passes complete messages to the transport if it asks for them.
  private func deliver(_ context: ChannelHandlerContext) {
    guard !isResting, isWanted || clientEnd == .read else { return }
    if !ready.isEmpty { expectation = .none }
    var count = 0
    while !isOver, let message = nextMessage(context) {
      let isLast = clientEnd == .read && ready.isEmpty && isBetweenMessages
      forward(message, isLast: isLast, context)
      if isLast { return }
      // The transport keeps the last buffer that it was passed.
      if message.readableBytes > MessageAssembler.maxFreeByteCount { forward(ByteBuffer(), isLast: false, context) }
      count += 1
      if count == Self.turnCount { return rest(context) }
    }
    if clientEnd == .read, waitingID == nil, !isResting, !isOver { forward(ByteBuffer(), isLast: true, context) }
  }

  /// Returns the next message if it is complete, and cuts further ones from the received bytes before.
  private func nextMessage(_ context: ChannelHandlerContext) -> ByteBuffer? {
    do throws(RequestRefusal) { if ready.isEmpty { try read(context) } } catch {
      refuse(error)
    }
    return ready.popFirst()
  }

  private func forward(_ bytes: ByteBuffer, isLast: Bool, _ context: ChannelHandlerContext) {
    context.fireChannelRead(wrapInboundOut(.data(.init(data: .byteBuffer(bytes), endStream: isLast))))
  }
}
