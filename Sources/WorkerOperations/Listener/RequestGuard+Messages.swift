internal import NIOCore
internal import NIOHTTP2

/// The messages of a call: each is charged from its length prefix, and the client may send more than `Window.idle` bytes
/// only of one that is charged.
extension RequestGuard {
  /// The flow-control window of a call.
  struct Window {
    /// The number of bytes that the client may still send.
    var byteCount: Int
    /// The window while no message is charged.
    var idle: Int
    /// Window that the HTTP/2 handler has opened and the client was not told of.
    var withheld = 0
    /// The charge of an idle window that is larger than usual.
    var charge: MessageCharge?

    init(_ byteCount: Int) { (self.byteCount, idle) = (byteCount, byteCount) }
  }

  // MARK: Bytes

  /// Takes a DATA frame.
  func take(_ payload: HTTP2Frame.FramePayload.Data, _ context: ChannelHandlerContext) {
    if payload.endStream { clientEnd = .read }
    guard case .byteBuffer(let bytes) = payload.data else { return }
    window.byteCount -= bytes.readableBytes + (payload.paddingBytes.map { $0 + 1 } ?? 0)
    progress.receivedByteCount += bytes.readableBytes
    do throws(RequestRefusal) {
      try framing.push(bytes, isLast: payload.endStream)
      if let messages = try inflater?.push(bytes) {
        if messages.readableBytes > 0 { ready.append(messages) }
      } else {
        assembler.push(bytes)
        try assemble(context)
      }
    } catch {
      return refuse(error)
    }
    deliver(context)
    adjustWindow(context)
  }

  /// Assembles messages until one waits for memory or more bytes are needed.
  private func assemble(_ context: ChannelHandlerContext) throws(RequestRefusal) {
    defer { assembler.keep() }
    while true {
      switch assembler.next() {
      case .message(let message):
        hasReceivedMessage = true
        ready.append(message)
      case .needsMemory(let byteCount): if try !admit(byteCount, context) { return }
      case .needsBytes: return
      }
    }
  }

  /// Requests the memory of a message; returns `false` if it must wait.
  private func admit(_ byteCount: Int, _ context: ChannelHandlerContext) throws(RequestRefusal) -> Bool {
    let limits = connection.limits
    let length = byteCount - MessageAssembler.prefixByteCount
    guard length <= limits.maxReadMessageByteCount else {
      throw .tooLarge(.init(name: "max_message_bytes", limit: limits.maxMessageByteCount, value: length))
    }
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
      waitingID = id
      return false
    case .full: throw .overloaded("too many messages are waiting for memory")
    case .tooLarge(let limit): throw .tooLarge(.init(name: "memory_limit", limit: limit, value: length))
    }
  }

  private func begin(_ byteCount: Int, isContinuation: Bool) throws(RequestRefusal) {
    let charge = MessageCharge { [memory = connection.limits.messages, id = connection.id] in
      memory.releaseMessage(byteCount, of: id, isContinuation: isContinuation)
    }
    guard let memory = ByteBuffer.charged(capacity: byteCount, charge: charge) else {
      throw .overloaded("there is no memory for the message")
    }
    assembler.begin(memory, byteCount: byteCount)
  }

  /// Continues with a message that was charged after it had waited.
  private func grant(_ byteCount: Int, isContinuation: Bool) {
    guard let context, state == .running, waitingID != nil else {
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
    deliver(context)
    context.fireChannelReadComplete()
    adjustWindow(context)
    connection.flush()
  }

  /// Releases the messages of a call that has ended.
  func releaseMessages() {
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

  // MARK: Delivery

  func read(context: ChannelHandlerContext) {
    isWanted = true
    if !ready.isEmpty {
      deliver(context)
      context.fireChannelReadComplete()
      adjustWindow(context)
      connection.flush()
    }
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
    guard isWanted || clientEnd == .read else { return }
    if !ready.isEmpty { expectation = .none }
    while state == .running, let message = ready.popFirst() {
      let isLast = clientEnd == .read && ready.isEmpty && assembler.isEmpty
      forward(message, isLast: isLast, context)
      if isLast { return }
      // The transport keeps the last buffer that it was passed.
      if message.readableBytes > MessageAssembler.maxFreeByteCount { forward(ByteBuffer(), isLast: false, context) }
    }
    if clientEnd == .read, waitingID == nil, state == .running { forward(ByteBuffer(), isLast: true, context) }
  }

  private func forward(_ bytes: ByteBuffer, isLast: Bool, _ context: ChannelHandlerContext) {
    context.fireChannelRead(wrapInboundOut(.data(.init(data: .byteBuffer(bytes), endStream: isLast))))
  }

  // MARK: Flow control

  /// Keeps a WINDOW_UPDATE of the HTTP/2 handler.
  func withhold(_ byteCount: Int) { window.withheld += byteCount }

  /// Lets the client send the rest of a charged message, or the beginning of the next one.
  private func adjustWindow(_ context: ChannelHandlerContext) {
    guard state == .running, clientEnd == .none, waitingID == nil, ready.isEmpty else { return }
    let rest = assembler.missingByteCount
    if rest > 0 {
      if window.byteCount < rest { openWindow(to: rest + window.idle, context) }
    } else if window.byteCount < window.idle / 2 {
      widen()
      openWindow(to: window.idle, context)
    }
  }

  /// Enlarges the window of a stream with several messages, so that it need not wait at the beginning of each.
  private func widen() {
    let limits = connection.limits
    let surplus = limits.windowByteCount - limits.streamWindowByteCount
    guard window.charge == nil, surplus > 0, limits.messages.openWindow(surplus) else { return }
    window.charge = MessageCharge { limits.messages.closeWindow(surplus) }
    window.idle = limits.windowByteCount
  }

  private func openWindow(to byteCount: Int, _ context: ChannelHandlerContext) {
    let missing = byteCount - window.byteCount
    if window.withheld < missing {
      // `withhold` is called meanwhile, unless the stream is closing.
      context.writeAndFlush(
        wrapOutboundOut(.windowUpdate(windowSizeIncrement: missing - window.withheld)), promise: nil)
    }
    guard window.withheld >= missing else { return }
    window.withheld -= missing
    window.byteCount = byteCount
    connection.openWindow(of: stream, by: missing)
  }
}
