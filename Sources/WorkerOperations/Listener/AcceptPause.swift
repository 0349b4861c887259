internal import LibC
internal import Logging
internal import NIOCore

/// Pauses a listening socket while there are no file descriptors, or no memory, for another connection.
///
/// It pauses before the last descriptors are used (`SpareDescriptors`). SwiftNIO's own back-off postpones only the reads
/// that it issues itself: the socket stays registered, and is retried immediately for as long as a connection is pending.
///
/// Needed with swift-nio 2.101.2.
final class AcceptPause: ChannelInboundHandler {
  typealias InboundIn = any Channel

  private static var length: TimeAmount { .milliseconds(100) }
  private static var reportInterval: TimeAmount { .seconds(10) }

  private let logger: Logger
  private var spare = SpareDescriptors()
  private var acceptedCount = 0
  private var isPaused = false
  private var nextReport = NIODeadline.now()

  init(logger: Logger) { self.logger = logger }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    acceptedCount += 1
    context.fireChannelRead(data)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    if !isPaused, !hasDescriptors() {
      report("\(spare.usedCount) of \(spare.limit) file descriptors are in use; raise their limit")
      pause(context)
    }
    context.fireChannelReadComplete()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard let failure = error as? IOError else { return context.fireErrorCaught(error) }
    // A client that disconnected before it was accepted must not delay others.
    guard failure.errnoCode != ECONNABORTED, !isPaused else { return }
    report("\(failure)")
    pause(context)
  }

  private func hasDescriptors() -> Bool {
    defer { acceptedCount = 0 }
    return spare.remain(after: acceptedCount)
  }

  private func pause(_ context: ChannelHandlerContext) {
    guard let options = context.channel.syncOptions, (try? options.setOption(.autoRead, value: false)) != nil else {
      return
    }
    isPaused = true
    let loopBound = NIOLoopBound((self, options), eventLoop: context.eventLoop)
    context.eventLoop.scheduleRepeatedTask(initialDelay: Self.length, delay: Self.length) { task in
      let (pause, options) = loopBound.value
      guard pause.hasDescriptors() else { return }
      task.cancel()
      pause.isPaused = false
      // Throws if the socket was closed in the meantime.
      try? options.setOption(.autoRead, value: true)
    }
  }

  private func report(_ reason: String) {
    guard NIODeadline.now() >= nextReport else { return }
    nextReport = .now() + Self.reportInterval
    logger.warning("new connections cannot be accepted at the moment", metadata: ["error": "\(reason)"])
  }
}
