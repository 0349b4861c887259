internal import NIOCore

extension ConnectionGuard {
  /// Counts the connection, and closes it if there are too many; otherwise watches it until it is closed.
  func open(_ context: ChannelHandlerContext) {
    let host = context.remoteAddress?.ipAddress ?? ""
    guard limits.connections.open(host) else { return cut("too_many_connections", context) }
    countedHost = host
    guard limits.messages.occupy(Self.occupiedByteCount) else { return cut("no_memory_for_connections", context) }
    isOccupying = true
    let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    let interval = TimeAmount(limits.time.checkInterval)
    checkTask = context.eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in
      let (connection, context) = loopBound.value
      connection.check(context)
    }
  }

  /// Ends what `open` began.
  func close() {
    checkTask?.cancel()
    checkTask = nil
    if let host = countedHost { limits.connections.close(host) }
    countedHost = nil
    if isOccupying { limits.messages.vacate(Self.occupiedByteCount) }
    isOccupying = false
  }

  /// Memory that a connection takes, with its buffers, in bytes.
  private static var occupiedByteCount: Int { 64 << 10 }

  private func check(_ context: ChannelHandlerContext) {
    guard !isOver else { return }
    let now = NIODeadline.now()
    let seen = ConnectionWatch.Observation(
      hasReceived: hasReceived, hasHandshaken: hasHandshaken, callCount: requests.count,
      isWritable: context.channel.isWritable)
    hasReceived = false
    switch watch.check(seen, at: now) {
    case .none: break
    case .ping:
      write(context) { $0.writePing(.random(in: .min ... .max), isAnswer: false) }
    case .drain(let message): beginDrain(context, message: message)
    case .cut(let reason): return cut(reason, context)
    }
    let elapsed = Duration(now - checked)
    checked = now
    for request in requests.values { request.check(elapsed: elapsed) }
    flush()
  }
}
