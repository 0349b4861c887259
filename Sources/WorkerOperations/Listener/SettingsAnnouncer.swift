internal import NIOCore
internal import NIOHTTP2

/// Announces settings that the transport does not offer, with a second SETTINGS frame.
///
/// - The metadata limit of the HTTP/2 handler is 16 KiB. Above its limit the handler ends the connection; below it, the
///   worker can answer the call.
/// - The window of a stream is that of the connection. A smaller one bounds what clients send before their messages are
///   charged.
///
/// Needed with grpc-swift-nio-transport 2.9.2.
final class SettingsAnnouncer: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame
  typealias OutboundOut = HTTP2Frame

  private let settings: HTTP2Settings
  private var isAnnounced = false

  init(limits: ConnectionLimits) {
    settings = [
      HTTP2Setting(parameter: .maxHeaderListSize, value: limits.maxReadMetadataByteCount),
      HTTP2Setting(parameter: .initialWindowSize, value: limits.streamWindowByteCount),
    ]
  }

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
    context.writeAndFlush(
      wrapOutboundOut(HTTP2Frame(streamID: .rootStream, payload: .settings(.settings(settings)))), promise: nil)
  }
}
