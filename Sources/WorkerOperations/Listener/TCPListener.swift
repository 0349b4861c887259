package import GRPCNIOTransportHTTP2Posix
package import NIOCore
internal import NIOHTTP2
internal import NIOPosix

/// Listens on a TCP address without TLS and guards every connection.
///
/// It replaces `HTTP2ServerTransport.Posix`, which asks the connection for its certificates on each call, with two
/// round trips through its event loop, even without TLS.
package struct TCPListener: HTTP2ServerTransport.ListenerFactory {
  private let host: String
  private let port: Int
  private let limits: ConnectionLimits
  private let inflation: InflationAllowance

  /// Creates a listener.
  ///
  /// - Parameters:
  ///   - host: A host name or an address, IPv6 without brackets.
  ///   - port: The port number; 0 selects any free port.
  ///   - limits: The limits for each client.
  package init(host: String, port: Int, limits: ConnectionLimits) {
    self.host = host
    self.port = port
    self.limits = limits
    inflation = InflationAllowance(limits.maxInflatedByteCount, account: limits.inflationAccount)
  }

  /// The event loops of the listener and its connections, shared by the whole process.
  package var eventLoopGroup: any EventLoopGroup { MultiThreadedEventLoopGroup.singleton }

  package func makeListeningChannel(
    listenerConfigurator: HTTP2ServerTransport.ListenerConfigurator,
    connectionConfigurator: HTTP2ServerTransport.ConnectionConfigurator
  ) async throws -> NIOAsyncChannel<HTTP2ServerTransport.ConnectionConfigurator.ConnectionChannel, Never> {
    let bootstrap = ServerBootstrap(group: eventLoopGroup)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .serverChannelOption(.backlog, value: limits.backlog)
      .serverChannelInitializer { [limits] channel in
        listenerConfigurator.configure(channel: channel).flatMapThrowing {
          try channel.pipeline.syncOperations.addHandler(AcceptPause(logger: limits.logger))
        }
      }
    do {
      return try await bootstrap.bind(host: host, port: port) { [limits, inflation] channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(ConnectionGuard(limits: limits, inflation: inflation))
        }.flatMap {
          connectionConfigurator.configure(channel: channel, tls: .none)
        }.flatMapThrowing { connection in
          let pipeline = channel.pipeline.syncOperations
          let position = ChannelPipeline.SynchronousOperations.Position.after(
            try pipeline.handler(type: NIOHTTP2Handler.self))
          let filter = StreamErrorFilter(connection: try pipeline.handler(type: ConnectionGuard.self))
          try pipeline.addHandler(filter, position: position)
          try pipeline.addHandler(
            MetadataSizeAnnouncer(byteCount: limits.maxReadMetadataByteCount), position: position)
          return connection
        }
      }
    } catch { throw Refusal(host: host, port: port, reason: error) }
  }

  private struct Refusal: Error, CustomStringConvertible {
    let host: String
    let port: Int
    let reason: any Error

    var description: String { "cannot listen on port \(port) of \(host): \(reason)" }
  }
}

extension HTTP2ServerTransport.Custom<TCPListener>.Config {
  /// The default configuration, with a guard on each call.
  ///
  /// Without it, a `ConnectionGuard` treats open calls as ended.
  package static var guarded: Self {
    var configuration = defaults
    configuration.channelDebuggingCallbacks.onAcceptHTTP2Stream = { channel in
      channel.eventLoop.makeCompletedFuture { try RequestGuard.install(on: channel) }
    }
    return configuration
  }
}
