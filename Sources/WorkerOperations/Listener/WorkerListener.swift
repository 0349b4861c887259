package import GRPCNIOTransportHTTP2Posix
internal import LibC
package import NIOCore
internal import NIOHTTP2
internal import NIOPosix

/// Listens on an address and guards every connection.
///
/// It replaces `HTTP2ServerTransport.Posix`, which asks the connection for its certificates on each call, with two
/// round trips through its event loop, even without TLS.
package struct WorkerListener: HTTP2ServerTransport.ListenerFactory {
  private let address: ListenAddress
  private let limits: ConnectionLimits
  private let tls: TLSSecurity?
  private let authenticator: Authenticator?
  private let options: Options
  private let inflation: InflationAllowance

  /// Creates a listener.
  ///
  /// - Parameters:
  ///   - address: The address to listen on.
  ///   - limits: The limits for each client.
  ///   - tls: The security of connections; `nil` for plaintext.
  ///   - authenticator: Identifies the callers; `nil` to serve every caller.
  ///   - options: What sockets are allowed.
  package init(
    address: ListenAddress, limits: ConnectionLimits, tls: TLSSecurity? = nil, authenticator: Authenticator? = nil,
    options: Options = Options()
  ) {
    self.address = address
    self.limits = limits
    self.tls = tls
    self.authenticator = authenticator
    self.options = options
    inflation = InflationAllowance(limits.maxInflatedByteCount, memory: limits.messages)
  }

  /// The event loops of the listener and its connections, shared by the whole process.
  package var eventLoopGroup: any EventLoopGroup { MultiThreadedEventLoopGroup.singleton }

  package func makeListeningChannel(
    listenerConfigurator: HTTP2ServerTransport.ListenerConfigurator,
    connectionConfigurator: HTTP2ServerTransport.ConnectionConfigurator
  ) async throws -> NIOAsyncChannel<HTTP2ServerTransport.ConnectionConfigurator.ConnectionChannel, Never> {
    var bootstrap = ServerBootstrap(group: eventLoopGroup)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .serverChannelOption(.backlog, value: limits.backlog)
      .serverChannelInitializer { [limits] channel in
        listenerConfigurator.configure(channel: channel).flatMapThrowing {
          try channel.pipeline.syncOperations.addHandler(AcceptPause(logger: limits.logger))
        }
      }
    do {
      switch address {
      case .tcp(let host, let port):
        if options.sharesPort {
          bootstrap = bootstrap.serverChannelOption(.socketOption(.init(rawValue: SO_REUSEPORT)), value: 1)
        }
        let port = options.fallsBackToAnyPort ? try await freePort(host, port) : port
        return try await bootstrap.bind(host: host, port: port) { configure($0, connectionConfigurator) }
      case .unix(let path, let permissions):
        let file = UnixSocketFile(path: path, permissions: permissions)
        return try await file.listen { descriptor in
          try await bootstrap.bind(descriptor) { configure($0, connectionConfigurator) }
        }
      case .inherited(let descriptor):
        // Programs that the worker executes have no use for it.
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        let listener = try await bootstrap.bind(descriptor) { configure($0, connectionConfigurator) }
        guard let address = listener.channel.localAddress else { throw Unusable.noSocket }
        guard options.allowsOtherMachines || ListenAddress.isLocal(address) else {
          try? await listener.channel.close()
          throw Unusable.reachable("\(address)")
        }
        return listener
      }
    } catch { throw ListenError(error, address: address) }
  }

  /// Returns the port, or 0 if another process has it.
  ///
  /// The port is tried with a socket of its own, because the transport can shut down only the first that it sets up.
  private func freePort(_ host: String, _ port: Int) async throws -> Int {
    do {
      let trial = try await ServerBootstrap(group: eventLoopGroup)
        .serverChannelOption(.socketOption(.so_reuseaddr), value: 1).bind(host: host, port: port).get()
      try await trial.close()
      return port
    } catch {
      if ListenError.isInUse(error) { return 0 }
      throw error
    }
  }

  /// Sets up an accepted connection.
  @Sendable private func configure(
    _ channel: any Channel, _ configurator: HTTP2ServerTransport.ConnectionConfigurator
  ) -> EventLoopFuture<HTTP2ServerTransport.ConnectionConfigurator.ConnectionChannel> {
    channel.eventLoop.makeCompletedFuture {
      let caller = authenticator.map(ConnectionCaller.init)
      try tls?.secure(channel, caller: caller)
      let connection = ConnectionGuard(limits: limits, inflation: inflation, caller: caller)
      try channel.pipeline.syncOperations.addHandlers([
        ConnectionTimer(connection: connection), connection, SentFrames(connection: connection),
      ])
    }.flatMap {
      configurator.configure(channel: channel, tls: tls == nil ? .none : .configured(requireALPN: true))
    }.flatMapThrowing { connection in
      let pipeline = channel.pipeline.syncOperations
      let position = ChannelPipeline.SynchronousOperations.Position.after(
        try pipeline.handler(type: NIOHTTP2Handler.self))
      let filter = StreamErrorFilter(sent: try pipeline.handler(type: SentFrames.self))
      try pipeline.addHandler(filter, position: position)
      try pipeline.addHandler(SettingsAnnouncer(limits: limits), position: position)
      try pipeline.addHandler(ConnectionKeeper(connection))
      return connection
    }
  }

  /// Options of the sockets.
  package struct Options: Sendable {
    /// Whether other processes of the same user may listen on the same port.
    package var sharesPort = false
    /// Whether an inherited socket may be one that other machines can reach.
    package var allowsOtherMachines = false
    /// Whether any free port is chosen if another process has the port.
    package var fallsBackToAnyPort = false

    /// Creates options that allow nothing.
    package init() {}
  }

  private enum Unusable: Error, CustomStringConvertible {
    case noSocket
    case reachable(String)

    var description: String {
      switch self {
      case .noSocket: "it is not a socket that listens"
      case .reachable(let address):
        """
        \(address) can be reached from other machines, without TLS and without identities. Set --tls-certificate \
        and --tls-key, or --identities, or allow it with --insecure
        """
      }
    }
  }
}

extension HTTP2ServerTransport.Custom<WorkerListener>.Config {
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
