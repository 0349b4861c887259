internal import NIOCore
internal import NIOHTTP2

/// Keeps errors of one stream from ending the connection.
///
/// The HTTP/2 handler reports an error of a stream, such as a bad header field, as it does one of the connection, and the
/// transport ends the connection for both. But only for its own errors the handler has told the client to go away.
final class StreamErrorFilter: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame

  private let connection: ConnectionGuard

  init(connection: ConnectionGuard) { self.connection = connection }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if error is any NIOHTTP2Error, !connection.hasFailed { return }
    context.fireErrorCaught(error)
  }
}
