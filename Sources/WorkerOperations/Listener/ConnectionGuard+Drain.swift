internal import NIOCore

extension ConnectionGuard {
  /// How far a connection is on its way to its end.
  enum Drain {
    case none
    /// The client was asked to open no more calls, by GOAWAY and a PING with this data.
    case begun(UInt64)
    /// The client was told the last call that is served: it has no other under way.
    case settled(lastStream: UInt32)
    case closing

    func accepts(_ stream: UInt32) -> Bool {
      switch self {
      case .none, .begun: true
      case .settled(let last): stream <= last
      case .closing: false
      }
    }

    var hasBegun: Bool { if case .none = self { false } else { true } }
  }

  /// How long a client may take to answer the PING.
  ///
  /// One that does not read, as an idle one may, must not delay the end.
  private static var answerLimit: TimeAmount { .seconds(1) }
  /// How long a client may take to close its end after the last call.
  private static var closeLimit: TimeAmount { .milliseconds(500) }

  /// Lets every call finish that the client has opened, also those that it opens before it learns of the drain.
  ///
  /// The HTTP/2 handler refuses streams from its own first GOAWAY on, and ends the connection at their next frame
  /// (swift-nio-http2, issue 466). So it is not told of the drain.
  func beginDrain(_ context: ChannelHandlerContext) {
    guard !drain.hasBegun else { return }
    let ping = UInt64.random(in: .min ... .max)
    drain = .begun(ping)
    write(context) {
      $0.writeGoAway(lastStream: FrameHeader.lastStream, code: 0)
      $0.writePing(ping, isAnswer: false)
    }
    context.flush()
    for request in requests.values { request.connectionDrains() }
    let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    context.eventLoop.scheduleTask(in: Self.answerLimit) {
      let (connection, context) = loopBound.value
      if case .begun = connection.drain, !connection.isClosed { connection.settleDrain(context) }
    }
  }

  /// The client opens no more calls: tells it which was the last, and ends the connection with the last of them.
  func settleDrain(_ context: ChannelHandlerContext) {
    drain = .settled(lastStream: lastStream)
    write(context) { $0.writeGoAway(lastStream: lastStream, code: 0) }
    context.flush()
    closeWhenDrained()
  }

  func closeWhenDrained() {
    guard case .settled = drain, requests.isEmpty, let context else { return }
    drain = .closing
    let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    // Behind what the last call still writes.
    context.eventLoop.execute {
      let (connection, context) = loopBound.value
      if !connection.isClosed { connection.closeGently(context) }
    }
  }

  /// Closes the connection when the client has, or soon.
  ///
  /// To close it while the client's last frames arrive would reset it, and cost the client what it has not read.
  func closeGently(_ context: ChannelHandlerContext) {
    context.flush()
    context.close(mode: .output, promise: nil)
    let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    context.eventLoop.scheduleTask(in: Self.closeLimit) {
      let (connection, context) = loopBound.value
      if !connection.isClosed { context.close(promise: nil) }
    }
  }
}
