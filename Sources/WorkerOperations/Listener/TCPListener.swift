package import GRPCNIOTransportHTTP2Posix
package import NIOCore
internal import NIOPosix

/// Listens on an address of the machine, without TLS.
///
/// Instead of `HTTP2ServerTransport.Posix`, which asks the connection of each call for certificates, twice by way of its
/// event loop, also without TLS.
package struct TCPListener: HTTP2ServerTransport.ListenerFactory {
  private let host: String
  private let port: Int

  /// - Parameters:
  ///   - host: a name or an address, IPv6 without brackets.
  ///   - port: 0 for any free one.
  package init(host: String, port: Int) {
    self.host = host
    self.port = port
  }

  package var eventLoopGroup: any EventLoopGroup { MultiThreadedEventLoopGroup.singleton }

  package func makeListeningChannel(
    listenerConfigurator: HTTP2ServerTransport.ListenerConfigurator,
    connectionConfigurator: HTTP2ServerTransport.ConnectionConfigurator
  ) async throws -> NIOAsyncChannel<HTTP2ServerTransport.ConnectionConfigurator.ConnectionChannel, Never> {
    let bootstrap = ServerBootstrap(group: eventLoopGroup)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .serverChannelInitializer { listenerConfigurator.configure(channel: $0) }
    do {
      return try await bootstrap.bind(host: host, port: port) {
        connectionConfigurator.configure(channel: $0, tls: .none)
      }
    } catch { throw Refusal(host: host, port: port, reason: error) }
  }

  private struct Refusal: Error, CustomStringConvertible {
    let host: String
    let port: Int
    let reason: any Error

    var description: String { "can't listen on port \(port) of \(host): \(reason)" }
  }
}
