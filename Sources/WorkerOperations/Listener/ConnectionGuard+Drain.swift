internal import NIOCore

extension ConnectionGuard {
  /// Progress of a connection's graceful shutdown.
  enum Drain {
    case none
    /// The client was asked to open no more calls, by GOAWAY and a PING with this data.
    case begun(ping: UInt64, message: String)
    /// The client has received the identifier of the last call that is served; it can open no further calls.
    case settled(lastStream: UInt32, message: String)
    case closing

    func accepts(_ stream: UInt32) -> Bool {
      switch self {
      case .none, .begun: true
      case .settled(let last, _): stream <= last
      case .closing: false
      }
    }

    /// The reason, for calls that would otherwise run for as long as the client wants; `nil` without a drain.
    var message: String? {
      switch self {
      case .none, .closing: nil
      case .begun(_, let message), .settled(_, let message): message
      }
    }
  }

  /// Time limit for the client to close its end after the last call.
  private static var closeLimit: TimeAmount { .milliseconds(500) }

  /// Starts a drain that lets every open call finish, including calls opened before the client learns of it.
  ///
  /// The HTTP/2 handler refuses streams after its own first GOAWAY and ends the connection at their next frame
  /// (swift-nio-http2, issue 466). It is therefore not informed of the drain.
  ///
  /// - `message`: the reason, for calls that would otherwise run for as long as the client wants.
  func beginDrain(message: String) {
    guard case .none = drain, let context else { return }
    let ping = UInt64.random(in: .min ... .max)
    drain = .begun(ping: ping, message: message)
    write {
      $0.writeGoAway(lastStream: FrameHeader.lastStream, code: 0)
      $0.writePing(ping, isAnswer: false)
    }
    flush()
    for request in requests.values { request.connectionDrains(message) }
    let loopBound = NIOLoopBound(self, eventLoop: context.eventLoop)
    context.eventLoop.scheduleTask(in: TimeAmount(limits.time.drainAnswer)) { loopBound.value.settleDrain() }
  }

  /// Sends the identifier of the last served call and closes the connection when the last call ends.
  ///
  /// Called when the client can open no more calls.
  func settleDrain() {
    guard case .begun(_, let message) = drain, phase != .closed else { return }
    drain = .settled(lastStream: lastStream, message: message)
    write { $0.writeGoAway(lastStream: lastStream, code: 0) }
    flush()
    closeWhenDrained()
  }

  func closeWhenDrained() {
    guard case .settled = drain, requests.isEmpty, let context else { return }
    drain = .closing
    let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    // Close only after the last call has written its remaining data.
    context.eventLoop.execute {
      let (connection, context) = loopBound.value
      if connection.phase != .closed { connection.closeGently(context) }
    }
  }

  /// Closes the write side now, and the connection when the client has closed its end or `closeLimit` has passed.
  ///
  /// Closing it while the client's last frames arrive would reset the connection, and the client would lose data that
  /// it has not read yet.
  func closeGently(_ context: ChannelHandlerContext) {
    context.flush()
    context.close(mode: .output, promise: nil)
    let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    context.eventLoop.scheduleTask(in: Self.closeLimit) {
      let (connection, context) = loopBound.value
      if connection.phase != .closed { context.close(promise: nil) }
    }
  }
}
