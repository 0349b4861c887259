internal import NIOCore
internal import Synchronization

/// Ends a connection for which there is no room, and one on which nothing moves: whose page does not read what is written
/// to it, or, while the worker stops, whose request does not arrive.
///
/// A result that nobody reads would keep the process that works on it from others.
final class StalledConnection: ChannelDuplexHandler, RemovableChannelHandler {
  // Parts of requests and responses, which pass as they are.
  typealias InboundIn = NIOAny
  typealias OutboundIn = NIOAny

  /// How long a write may wait for its reader.
  private static let limit = TimeAmount.seconds(30)
  /// How long nothing may happen while the worker stops.
  private static let limitAtEnd = TimeAmount.seconds(2)
  private static let interval = TimeAmount.seconds(1)

  private let hasRoom: @Sendable () -> Bool
  private let isStopping: @Sendable () -> Bool
  private var waitingCount = 0
  private var progressed = NIODeadline.now()
  private var task: RepeatedTask?

  init(hasRoom: @escaping @Sendable () -> Bool, isStopping: @escaping @Sendable () -> Bool) {
    self.hasRoom = hasRoom
    self.isStopping = isStopping
  }

  func handlerAdded(context: ChannelHandlerContext) {
    let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    task = context.eventLoop.scheduleRepeatedTask(initialDelay: Self.interval, delay: Self.interval) { _ in
      let (handler, context) = loopBound.value
      handler.check(context)
    }
  }

  func handlerRemoved(context: ChannelHandlerContext) { task?.cancel() }

  func channelActive(context: ChannelHandlerContext) {
    guard hasRoom() else { return context.close(promise: nil) }
    context.fireChannelActive()
  }

  func channelInactive(context: ChannelHandlerContext) {
    task?.cancel()
    context.fireChannelInactive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    progressed = .now()
    context.fireChannelRead(data)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    if waitingCount == 0 { progressed = .now() }
    waitingCount += 1
    let promise = promise ?? context.eventLoop.makePromise()
    promise.futureResult.assumeIsolated().whenComplete { _ in
      self.waitingCount -= 1
      self.progressed = .now()
    }
    context.write(data, promise: promise)
  }

  private func check(_ context: ChannelHandlerContext) {
    let silence = NIODeadline.now() - progressed
    guard waitingCount > 0 && silence > Self.limit || isStopping() && silence > Self.limitAtEnd else { return }
    task?.cancel()
    context.close(promise: nil)
  }
}
