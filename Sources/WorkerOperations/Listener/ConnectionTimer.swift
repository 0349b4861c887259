internal import NIOCore

/// Counts a connection, charges its memory, and ends it when it has been idle, silent or open for too long.
///
/// Needed with grpc-swift-nio-transport 2.9.2: it bounds neither handshakes nor the number of connections, and ends old
/// connections by the drain of the HTTP/2 handler.
final class ConnectionTimer: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  /// The allowances of a connection.
  private enum Place {
    case none
    /// It counts among the connections of a host.
    case counted(host: String)
    /// Its memory is charged, too.
    case charged(host: String)
  }

  /// Memory that a connection takes, with its buffers, in bytes.
  private static let occupiedByteCount = 64 << 10

  private let connection: ConnectionGuard
  private let limits: ConnectionLimits
  private var watch: ConnectionWatch
  private var task: RepeatedTask?
  private var checked = NIODeadline.now()
  /// Whether bytes were received since the last check.
  private var hasReceived = false
  private var place = Place.none

  init(connection: ConnectionGuard) {
    self.connection = connection
    limits = connection.limits
    watch = ConnectionWatch(limits: limits.time, now: checked)
  }

  func channelActive(context: ChannelHandlerContext) {
    context.fireChannelActive()
    open(context)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    hasReceived = true
    context.fireChannelRead(data)
  }

  func channelInactive(context: ChannelHandlerContext) {
    close()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) { close() }

  /// Counts the connection, and closes it if there are too many; otherwise watches it until it is closed.
  private func open(_ context: ChannelHandlerContext) {
    let host = context.remoteAddress?.ipAddress ?? ""
    guard limits.connections.open(host) else { return connection.cut("too_many_connections") }
    place = .counted(host: host)
    guard limits.messages.occupy(Self.occupiedByteCount) else { return connection.cut("no_memory_for_connections") }
    place = .charged(host: host)
    let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    let interval = TimeAmount(limits.time.checkInterval)
    task = context.eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in
      let (timer, context) = loopBound.value
      timer.check(isWritable: context.channel.isWritable)
    }
  }

  /// Ends what `open` began.
  private func close() {
    task?.cancel()
    task = nil
    switch place {
    case .none: break
    case .counted(let host): limits.connections.close(host)
    case .charged(let host):
      limits.connections.close(host)
      limits.messages.vacate(Self.occupiedByteCount)
    }
    place = .none
  }

  private func check(isWritable: Bool) {
    guard !connection.isOver else { return }
    let now = NIODeadline.now()
    let seen = ConnectionWatch.Observation(
      hasReceived: hasReceived, hasHandshaken: connection.phase != .handshake, callCount: connection.requests.count,
      isWritable: isWritable)
    hasReceived = false
    switch watch.check(seen, at: now) {
    case .none: break
    case .ping: connection.write { $0.writePing(.random(in: .min ... .max), isAnswer: false) }
    case .drain(let message): connection.beginDrain(message: message)
    case .cut(let reason): return connection.cut(reason)
    }
    connection.announce(connection.firstWindow.check(now))
    let elapsed = Duration(now - checked)
    checked = now
    for request in connection.requests.values { request.check(elapsed: elapsed) }
    connection.flush()
  }
}
