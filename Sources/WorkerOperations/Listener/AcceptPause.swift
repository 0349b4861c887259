internal import Logging
internal import NIOCore

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

/// Lets a listening socket rest when there are no descriptors, or no memory, for another connection.
///
/// SwiftNIO's own back-off postpones only the reads that it asks for: the socket stays registered and is tried again
/// at once, for as long as a connection waits.
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
    // A client that left before it was accepted is no reason to let others wait.
    guard failure.errnoCode != ECONNABORTED, !isPaused, let options = context.channel.syncOptions else { return }
    report(failure)
    guard (try? options.setOption(.autoRead, value: false)) != nil else { return }
    isPaused = true
    let loopBound = NIOLoopBound((self, options), eventLoop: context.eventLoop)
    context.eventLoop.scheduleTask(in: Self.length) {
      let (pause, options) = loopBound.value
      pause.isPaused = false
      // Fails when the socket was closed meanwhile.
      try? options.setOption(.autoRead, value: true)
    }
  }

  private func report(_ failure: IOError) {
    guard NIODeadline.now() >= nextReport else { return }
    nextReport = .now() + Self.reportInterval
    logger.warning("new connections cannot be accepted at the moment", metadata: ["error": "\(failure)"])
  }
}
