import GRPCCore
import GRPCNIOTransportHTTP2Posix
import Logging

@testable import WorkerOperations

/// A server that has only the health service.
struct HealthServer: Sendable {
  var port: Int
  var health: HealthState
  var drain: @Sendable () -> Void
}

/// Runs a blocking client against a server that has only the health service.
func serveHealth(
  _ limits: ConnectionLimits, frameByteCount: Int = 16 << 10, _ body: @escaping @Sendable (HealthServer) throws -> Void
) async throws {
  var (limits, configuration) = (limits, HTTP2ServerTransport.Custom<WorkerListener>.Config.guarded)
  limits.maxFrameByteCount = frameByteCount
  configuration.http2.maxFrameSize = frameByteCount
  let transport = HTTP2ServerTransport.Custom(
    listenerFactory: WorkerListener(address: .tcp(host: "127.0.0.1", port: 0), limits: limits), config: configuration)
  let state = HealthState(services: [])
  state.set(.serving)
  let server = GRPCServer(
    transport: transport, services: [HealthService(state: state)],
    interceptors: [ListenerInterceptor(limits.callLog), CallInterceptor(limits.callLog)])
  try await withThrowingTaskGroup(of: Void.self) { group in
    group.addTask(executorPreference: EventLoopExecutor.shared) { try await server.serve() }
    let port = await transport.listeningAddress?.ipv4?.port ?? 0
    let drain: @Sendable () -> Void = {
      state.set(.notServing)
      server.beginGracefulShutdown()
    }
    try await RawConnection.onThread { try body(HealthServer(port: port, health: state, drain: drain)) }
    drain()
    try await group.waitForAll()
  }
}
