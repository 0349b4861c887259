internal import NIOCore
internal import NIOHTTP2

/// Raises the HTTP/2 handler's metadata limit above its 16 KiB, with a second SETTINGS frame.
///
/// Above its limit the handler ends the connection; below it, the worker can answer the call.
final class MetadataSizeAnnouncer: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame
  typealias OutboundOut = HTTP2Frame

  private let byteCount: Int
  private var isAnnounced = false

  init(byteCount: Int) { self.byteCount = byteCount }

  func handlerAdded(context: ChannelHandlerContext) {
    if context.channel.isActive { announce(context) }
  }

  func channelActive(context: ChannelHandlerContext) {
    announce(context)
    context.fireChannelActive()
  }

  private func announce(_ context: ChannelHandlerContext) {
    guard !isAnnounced else { return }
    isAnnounced = true
    let settings = [HTTP2Setting(parameter: .maxHeaderListSize, value: byteCount)]
    context.writeAndFlush(
      wrapOutboundOut(HTTP2Frame(streamID: .rootStream, payload: .settings(.settings(settings)))), promise: nil)
  }
}
