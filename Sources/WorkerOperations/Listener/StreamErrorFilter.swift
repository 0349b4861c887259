internal import NIOCore
internal import NIOHTTP2

/// Prevents an error of one stream from ending the connection.
///
/// The HTTP/2 handler reports an error of a stream, such as an invalid header field, in the same way as an error of the
/// connection, and the transport ends the connection for both. The difference is that only for a connection error the
/// handler has already sent GOAWAY.
final class StreamErrorFilter: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame

  private let connection: ConnectionGuard

  init(connection: ConnectionGuard) { self.connection = connection }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if error is any NIOHTTP2Error, !connection.hasFailed { return }
    context.fireErrorCaught(error)
  }
}
