import Foundation
import GRPCCore
import GRPCNIOTransportHTTP2Posix
import Logging
import NIOCore
import NIOPosix
import Synchronization
import Testing
import WorkerOperations
import WorkerProtocol

@Suite("Transport")
struct TransportTests {
  @Test(
    "a call's handler stays on one event loop, even after running elsewhere",
    arguments: ["127.0.0.1", "localhost"])
  func oneLoop(host: String) async throws {
    let probe = LoopProbe()
    let limits = ConnectionLimits(logger: Logger(label: "test"))
    let transport = HTTP2ServerTransport.Custom(
      listenerFactory: WorkerListener(address: .tcp(host: host, port: 0), limits: limits), config: .guarded)
    let server = GRPCServer(
      transport: transport, services: [HealthService(state: HealthState(services: []))],
      interceptors: [ListenerInterceptor(limits.callLog), probe])
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask(executorPreference: EventLoopExecutor.shared) { try await server.serve() }
      let address = try #require(await transport.listeningAddress)
      let target: any ResolvableTarget =
        if let address = address.ipv6 { .ipv6(address: address.host, port: address.port) } else {
          .ipv4(address: "127.0.0.1", port: try #require(address.ipv4).port)
        }
      for _ in 0..<4 {
        let client = try HTTP2ClientTransport.Posix(target: target, transportSecurity: .plaintext)
        try await withGRPCClient(transport: client) { client in
          for _ in 0..<8 {
            _ = try await Grpc_Health_V1_Health.Client(wrapping: client).check(Grpc_Health_V1_HealthCheckRequest())
          }
        }
      }
      server.beginGracefulShutdown()
      try await group.waitForAll()
    }
    let calls = probe.calls.withLock { $0 }
    #expect(calls.count == 32)
    for call in calls {
      #expect(call.count == 4 && call[1] == nil)
      #expect(call[0] != nil && call[2] == call[0] && call[3] == call[0])
    }
  }

  @Test("a connection that nobody takes does not end the process")
  func forgottenConnection() async throws {
    let listener = WorkerListener(
      address: .tcp(host: "127.0.0.1", port: 0), limits: ConnectionLimits(logger: Logger(label: "test")))
    let transport = HTTP2ServerTransport.Custom(
      listenerFactory: ForgetfulListener(listener: listener), config: .defaults)
    let server = GRPCServer(transport: transport, services: [HealthService(state: HealthState(services: []))])
    await #expect(throws: (any Error).self) { try await server.serve() }
  }
}

/// A listener that closes when it has forgotten its first connection, as swift-nio forgets those that arrive too late.
private struct ForgetfulListener: HTTP2ServerTransport.ListenerFactory {
  struct Forgotten: Error {}

  var listener: WorkerListener
  var eventLoopGroup: any EventLoopGroup { listener.eventLoopGroup }

  func makeListeningChannel(
    listenerConfigurator: HTTP2ServerTransport.ListenerConfigurator,
    connectionConfigurator: HTTP2ServerTransport.ConnectionConfigurator
  ) async throws -> NIOAsyncChannel<HTTP2ServerTransport.ConnectionConfigurator.ConnectionChannel, Never> {
    let channel = try await listener.makeListeningChannel(
      listenerConfigurator: listenerConfigurator, connectionConfigurator: connectionConfigurator)
    let port = channel.channel.localAddress?.port ?? 0
    try await channel.executeThenClose { inbound in
      let descriptor = try RawConnection.connected(port: port)
      defer { close(descriptor) }
      for try await _ in inbound { break }
      // Long enough for its writer to be released on its event loop.
      try await Task.sleep(for: .milliseconds(200))
    }
    throw Forgotten()
  }
}

/// Records the event loop of a call: at its start, in a task on another executor, after that task, and at its response.
private final class LoopProbe: ServerInterceptor {
  let calls = Mutex<[[ObjectIdentifier?]]>([])
  private let elsewhere = QueueExecutor()

  private static var loop: ObjectIdentifier? {
    MultiThreadedEventLoopGroup.currentEventLoop.map { ObjectIdentifier($0) }
  }

  func intercept<Input: Sendable, Output: Sendable>(
    request: StreamingServerRequest<Input>,
    context: ServerContext,
    next: @Sendable (StreamingServerRequest<Input>, ServerContext) async throws -> StreamingServerResponse<Output>
  ) async throws -> StreamingServerResponse<Output> {
    var loops = [Self.loop]
    loops.append(await withTaskExecutorPreference(elsewhere) { await self.loopOfTask() })
    loops.append(Self.loop)
    var response = try await next(request, context)
    guard case .success(var contents) = response.accepted else { return response }
    contents.producer = { [producer = contents.producer, loops] writer in
      self.calls.withLock { $0.append(loops + [Self.loop]) }
      return try await producer(writer)
    }
    response.accepted = .success(contents)
    return response
  }

  private func loopOfTask() async -> ObjectIdentifier? { Self.loop }
}

private final class QueueExecutor: TaskExecutor {
  private let queue = DispatchQueue(label: "elsewhere")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
