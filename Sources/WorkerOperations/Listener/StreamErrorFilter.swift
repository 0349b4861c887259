internal import NIOCore
internal import NIOHTTP2

/// Prevents an error of one stream from ending the connection.
///
/// The HTTP/2 handler reports an error of a stream, such as an invalid header field, in the same way as an error of the
/// connection, and the transport ends the connection for both. The difference is that only for a connection error the
/// handler has already sent GOAWAY.
///
/// Needed with swift-nio-http2 1.46.0 and grpc-swift-nio-transport 2.9.2.
final class StreamErrorFilter: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame

  private let sent: SentFrames

  init(sent: SentFrames) { self.sent = sent }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if error is any NIOHTTP2Error, !sent.hasGoneAway { return }
    context.fireErrorCaught(error)
  }
}
