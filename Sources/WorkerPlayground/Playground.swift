internal import HummingbirdCore
internal import LibC
package import Logging
internal import NIOCore
internal import NIOPosix
internal import ServiceLifecycle
internal import Synchronization
package import WorkerService

/// The page on which presets are tuned, as one service of the process.
///
/// It is served over HTTP/1.1. Its images are processed by the same code as those of calls, and count in the same
/// limits.
package struct Playground: Service {
  /// Where the page is served.
  package struct Address: Sendable, Hashable {
    /// The host name or address to listen on.
    package var host: String
    /// The port to listen on; 0 for any free one.
    package var port: Int
    /// Whether only processes of this machine can connect.
    package var isLocal: Bool
    /// Whether any free port is chosen if another process has the port.
    package var fallsBackToAnyPort: Bool

    package init(host: String, port: Int, isLocal: Bool, fallsBackToAnyPort: Bool = false) {
      self.host = host
      self.port = port
      self.isLocal = isLocal
      self.fallsBackToAnyPort = fallsBackToAnyPort
    }
  }

  /// Connections that are open at the same time; further ones wait.
  private static let maxConnections = 256
  /// Seconds after which a connection that sends nothing is closed.
  private static let idleSeconds = Int64(30)
  /// The time between two searches for images that have expired.
  private static let sweepInterval = Duration.seconds(10)

  private let address: Address
  private let responder: PlaygroundResponder
  private let uploads: UploadStore
  private let hasRoom: @Sendable () -> Bool
  private let logger: Logger

  /// Creates the page of a worker.
  ///
  /// - Parameters:
  ///   - address: Where to serve it.
  ///   - environment: The worker's shared state.
  ///   - worker: The address of the gRPC listener, once it is known, for the commands that the page shows.
  ///   - hasRoom: Returns whether a connection that was accepted is kept.
  ///   - logger: Reports the address of the page.
  package init(
    address: Address, environment: WorkerEnvironment, worker: WorkerAddress, hasRoom: @escaping @Sendable () -> Bool,
    logger: Logger
  ) {
    self.address = address
    self.hasRoom = hasRoom
    self.logger = logger
    uploads = UploadStore(memory: environment.memory, maxByteCount: environment.limits.maxMessageByteCount)
    responder = PlaygroundResponder(
      gate: RequestGate(isLocal: address.isLocal), uploads: uploads, environment: environment, worker: worker)
  }

  /// Serves the page until a graceful shutdown, which cancels the results that pages wait for.
  ///
  /// - Throws: An I/O error if the address cannot be bound.
  package func run() async throws {
    do { try await serve(port: address.port) } catch let error as IOError
      where error.errnoCode == EADDRINUSE && address.fallsBackToAnyPort
    {
      try await serve(port: 0)
    }
  }

  private func serve(port: Int) async throws {
    let logger = logger
    var quiet = logger
    quiet.logLevel = max(logger.logLevel, .warning)
    let (responder, hasRoom) = (responder, hasRoom)
    let connections = HTTP1Channel.Configuration(
      additionalChannelHandlers: [PageConnection(hasRoom: hasRoom) { responder.isStopping }],
      idleTimeout: .seconds(Self.idleSeconds))
    let server = try HTTPServerBuilder.http1(configuration: connections).buildServer(
      configuration: ServerConfiguration(
        address: .hostname(address.host, port: port),
        availableConnectionsDelegate: MaximumAvailableConnections(Self.maxConnections, logger: quiet)),
      eventLoopGroup: MultiThreadedEventLoopGroup.singleton, logger: quiet,
      responder: { request, writer, _ in
        let response = await responder.respond(to: request)
        try await writer.write(response: response.head, body: response.body)
      },
      onServerRunning: { channel in
        guard let address = channel.localAddress, let port = address.port else { return }
        logger.notice("playground", metadata: ["address": "http://\(address.ipAddress ?? ""):\(port)/"])
      })
    try await withGracefulShutdownHandler {
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await server.run() }
        group.addTask {
          while !Task.isCancelled {
            try? await Task.sleep(for: Self.sweepInterval)
            uploads.removeExpired()
          }
        }
        try await group.next()
        group.cancelAll()
      }
    } onGracefulShutdown: {
      responder.stop()
    }
  }
}

/// The address of the gRPC listener, which is known when the worker listens.
package final class WorkerAddress: Sendable {
  private let text = Mutex("")
  /// Whether clients need TLS to connect.
  package let isSecure: Bool

  /// Creates an address that is not known yet.
  package init(isSecure: Bool) { self.isSecure = isSecure }

  /// The address as clients spell it; empty until it is known.
  package var current: String {
    get { text.withLock { $0 } }
    set { text.withLock { $0 = newValue } }
  }
}
