internal import NIOCore
internal import WorkThreads

/// Counts a connection, charges its memory, and ends it when it has been idle, silent or open for too long.
///
/// Needed with grpc-swift-nio-transport 2.9.2: it bounds neither handshakes nor the number of connections, and ends old
/// connections by the drain of the HTTP/2 handler.
final class ConnectionTimer: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  /// Memory that a connection takes, with its buffers, in bytes.
  private static let occupiedByteCount = 64 << 10

  private let connection: ConnectionGuard
  private let limits: ConnectionLimits
  private var watch: ConnectionWatch
  private var task: RepeatedTask?
  private var checked = NIODeadline.now()
  /// Whether bytes were received since the last check.
  private var hasReceived = false
  /// The connection's place among those of its host, and the charge of its memory.
  private var claims: [Claim] = []

  init(connection: ConnectionGuard) {
    self.connection = connection
    limits = connection.limits
    watch = ConnectionWatch(limits: limits.time, now: checked)
  }

  func channelActive(context: ChannelHandlerContext) {
    let isOpen = open(context)
    // An HTTP/2 handler that has not heard of a connection does not pass on its end, which releases other handlers.
    context.fireChannelActive()
    if !isOpen { context.close(promise: nil) }
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

  /// Counts the connection and watches it until it is closed; refuses it and returns `false` if there are too many.
  private func open(_ context: ChannelHandlerContext) -> Bool {
    let host = Self.peer(context.remoteAddress)
    guard let place = limits.connections.open(host) else {
      connection.refuse("too_many_connections")
      return false
    }
    claims.append(place)
    guard let memory = limits.messages.occupy(Self.occupiedByteCount, isFirst: true) else {
      limits.connections.noteRefused()
      connection.refuse("no_memory_for_connections")
      return false
    }
    claims.append(memory)
    let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    let interval = TimeAmount(limits.time.checkInterval)
    task = context.eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in
      let (timer, context) = loopBound.value
      timer.check(isWritable: context.channel.isWritable)
    }
    return true
  }

  /// The peer of an address, for the limit on its connections: of IPv6, the network of 64 bits that a host has.
  static func peer(_ address: SocketAddress?) -> String {
    let text = address?.ipAddress ?? ""
    guard case .v6? = address else { return text }
    // An address of IPv4 in IPv6.
    if text.contains("."), let start = text.lastIndex(of: ":") { return String(text[text.index(after: start)...]) }
    let halves = text.split(separator: "::", omittingEmptySubsequences: false).map { $0.split(separator: ":") }
    let end = halves.count > 1 ? halves[1] : []
    let zeros = [Substring](repeating: "0", count: max(0, 8 - halves[0].count - end.count))
    return (halves[0] + zeros + end).prefix(4).joined(separator: ":")
  }

  /// Ends what `open` began.
  private func close() {
    task?.cancel()
    task = nil
    claims = []
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
    if let headers = connection.headers, let limit = limits.time.handshake, Duration(now - headers.began) >= limit {
      return connection.cut("headers_timeout")
    }
    connection.announce(connection.firstWindow.check(now))
    let elapsed = Duration(now - checked)
    checked = now
    for request in connection.requests.values { request.check(elapsed: elapsed) }
    connection.flush()
  }
}
