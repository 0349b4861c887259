internal import Logging
internal import NIOCore

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

/// Pauses a listening socket while there are no file descriptors, or no memory, for another connection.
///
/// SwiftNIO's own back-off postpones only the reads that it issues itself. The socket stays registered, so it is
/// retried immediately for as long as a connection is pending.
final class AcceptPause: ChannelInboundHandler {
  typealias InboundIn = any Channel

  private static var length: TimeAmount { .milliseconds(100) }
  private static var reportInterval: TimeAmount { .seconds(10) }

  private let logger: Logger
  private var isPaused = false
  private var nextReport = NIODeadline.now()

  init(logger: Logger) { self.logger = logger }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard let failure = error as? IOError else { return context.fireErrorCaught(error) }
    // A client that disconnected before it was accepted must not delay others.
    guard failure.errnoCode != ECONNABORTED, !isPaused, let options = context.channel.syncOptions else { return }
    report(failure)
    guard (try? options.setOption(.autoRead, value: false)) != nil else { return }
    isPaused = true
    let loopBound = NIOLoopBound((self, options), eventLoop: context.eventLoop)
    context.eventLoop.scheduleTask(in: Self.length) {
      let (pause, options) = loopBound.value
      pause.isPaused = false
      // Throws if the socket was closed in the meantime.
      try? options.setOption(.autoRead, value: true)
    }
  }

  private func report(_ failure: IOError) {
    guard NIODeadline.now() >= nextReport else { return }
    nextReport = .now() + Self.reportInterval
    logger.warning("new connections cannot be accepted at the moment", metadata: ["error": "\(failure)"])
  }
}
