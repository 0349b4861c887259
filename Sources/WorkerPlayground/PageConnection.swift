internal import NIOCore
internal import Synchronization

/// Ends a connection that would take more than its share.
///
/// | what a connection does | what it would take |
/// |---|---|
/// | comes when few descriptors are left | the last ones |
/// | sends many requests, or chunks of one, without waiting for responses | memory: a read of the socket holds a thousand |
/// | does not read what is written to it | the process that works on its result |
/// | sends nothing while the worker stops | the time of the drain |
final class PageConnection: ChannelDuplexHandler, RemovableChannelHandler {
  // Parts of requests and responses, which pass as they are.
  typealias InboundIn = NIOAny
  typealias OutboundIn = NIOAny

  /// How long a write may wait for its reader.
  private static let limit = TimeAmount.seconds(30)
  /// How long nothing may happen while the worker stops.
  private static let limitAtEnd = TimeAmount.seconds(2)
  private static let interval = TimeAmount.seconds(1)
  /// How many parts of requests may arrive before the next read of the socket; pages send one request at a time.
  private static let maxPartCount = 64

  private let hasRoom: @Sendable () -> Bool
  private let isStopping: @Sendable () -> Bool
  private var waitingCount = 0
  /// The parts of requests that have arrived since the last read of the socket.
  private var partCount = 0
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

  func read(context: ChannelHandlerContext) {
    partCount = 0
    context.read()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    progressed = .now()
    partCount += 1
    guard partCount <= Self.maxPartCount else { return context.close(promise: nil) }
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
