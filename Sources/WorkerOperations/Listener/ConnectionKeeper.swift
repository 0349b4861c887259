internal import GRPCNIOTransportHTTP2Posix
internal import NIOCore

/// Keeps what the transport made of a connection until the connection has ended; the last handler of each.
///
/// A listening socket that closes while a connection is set up forgets it, also if the connection then becomes active. Its
/// writer would end the process, because nobody has finished it.
///
/// Needed with swift-nio 2.101.2.
final class ConnectionKeeper: ChannelInboundHandler {
  typealias InboundIn = Any

  private var connection: HTTP2ServerTransport.ConnectionConfigurator.ConnectionChannel?

  init(_ connection: HTTP2ServerTransport.ConnectionConfigurator.ConnectionChannel) { self.connection = connection }

  // The handler before this one has finished the writer.
  func channelInactive(context: ChannelHandlerContext) {
    connection = nil
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) { connection = nil }
}
