internal import GRPCCore
internal import GRPCNIOTransportHTTP2Posix
internal import NIOCore
internal import NIOSSL
internal import Synchronization
internal import WorkerProtocol

/// One connection.
final class Worker: Sendable {
  typealias Stub = Imageworker_V1_ImageWorkerService.Client<HTTP2ClientTransport.Posix>

  /// The state by which a connection is chosen.
  struct State: Sendable {
    /// The calls and streams that are open.
    var load = 0
    /// The number of the last call that used it.
    var turn = 0
    var failures = 0
    var availableAt: ContinuousClock.Instant
    /// Items of batches that are in flight.
    var itemsInFlight = 0
    var itemsDone = 0
    var lastError: ImageWorkerError?
  }

  let address: WorkerAddress
  let isEncrypted: Bool
  let stub: Stub
  let state = Mutex(State(availableAt: .now))
  private let client: GRPCClient<HTTP2ClientTransport.Posix>

  init(_ address: WorkerAddress, tls: TLS?) throws {
    self.address = address
    isEncrypted = tls != nil
    let transport = try HTTP2ClientTransport.Posix(
      target: address.target, transportSecurity: tls?.security ?? .plaintext,
      config: .defaults { config in
        config.http2.authority = tls?.serverName
        config.connection.keepalive = .init(time: .seconds(30), timeout: .seconds(10), allowWithoutCalls: false)
        config.backoff = .init(initial: .milliseconds(200), max: .seconds(5), multiplier: 1.6, jitter: 0.2)
        config.channelDebuggingCallbacks.onCreateTCPConnection = { channel in
          channel.eventLoop.makeCompletedFuture {
            let pipeline = channel.pipeline.syncOperations
            let tls = try? pipeline.handler(type: NIOSSLClientHandler.self)
            try pipeline.addHandler(WholeFrames(), position: tls.map { .after($0) } ?? .first)
          }
        }
      },
      // A name with several addresses, such as that of a headless service, is balanced over all of them.
      serviceConfig: ServiceConfig(loadBalancingConfig: [.roundRobin]))
    client = GRPCClient(transport: transport)
    stub = Stub(wrapping: client)
  }

  /// Maintains the connection until it is closed or the task is cancelled.
  func run() async {
    // It throws when its task is cancelled; nothing is left to do then.
    try? await client.runConnections()
  }

  func close() { client.beginGracefulShutdown() }
}

/// The state of one connection of a client.
public struct WorkerStatus: Sendable, Equatable {
  /// The address, as the client was given it.
  public var address: String
  /// The items of batches that are in flight.
  public var itemsInFlight: Int
  /// The items of batches that ended there.
  public var itemsDone: Int
  /// The last error of the connection; `nil` while it works.
  public var error: ImageWorkerError?
}
