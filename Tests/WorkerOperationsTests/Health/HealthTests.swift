import GRPCCore
import GRPCInProcessTransport
import GRPCNIOTransportHTTP2Posix
import SwiftProtobuf
import Synchronization
import TestSupport
import Testing
import WorkerOperations
import WorkerProtocol

@Suite("Health", .timeLimit(.minutes(15)))
struct HealthTests {
  typealias Client = Grpc_Health_V1_Health.Client<InProcessTransport.Client>

  private func withHealth(_ body: (Client, HealthState) async throws -> Void) async throws {
    let state = HealthState(services: ["a.Service"])
    let transport = InProcessTransport()
    try await withGRPCServer(transport: transport.server, services: [HealthService(state: state)]) { _ in
      try await withGRPCClient(transport: transport.client) { try await body(Client(wrapping: $0), state) }
    }
  }

  /// The last status that a watcher received.
  private final class Told: Sendable {
    private let last = Mutex(Grpc_Health_V1_HealthCheckResponse.ServingStatus.unknown)

    var status: Grpc_Health_V1_HealthCheckResponse.ServingStatus {
      get { last.withLock { $0 } }
      set { last.withLock { $0 = newValue } }
    }
  }

  private func request(_ service: String) -> Grpc_Health_V1_HealthCheckRequest {
    .with { $0.service = service }
  }

  @Test("Check returns the status of known services, and NOT_FOUND for others")
  func check() async throws {
    try await withHealth { client, state in
      for service in ["", "a.Service"] {
        for (status, expected) in [
          (HealthState.Status.notServing, Grpc_Health_V1_HealthCheckResponse.ServingStatus.notServing),
          (.serving, .serving),
        ] {
          state.set(status)
          let answer = try await client.check(request(service))
          #expect(answer.status == expected)
        }
      }
      let error = await #expect(throws: RPCError.self) { () async throws in
        _ = try await client.check(request("b.Service"))
      }
      #expect(error?.code == .notFound)
    }
  }

  @Test("List returns the status of every service")
  func list() async throws {
    try await withHealth { client, state in
      state.set(.serving)
      let statuses = try await client.list(Grpc_Health_V1_HealthListRequest()).statuses
      #expect(Set(statuses.keys) == ["", "a.Service"])
      #expect(statuses.values.allSatisfy { $0.status == .serving })
    }
  }

  @Test("Watch sends the status now and at every change, and ends when its client disconnects")
  func watch() async throws {
    let state = HealthState(services: [])
    let server = GRPCServer(
      transport: HTTP2ServerTransport.Posix(
        address: .ipv4(host: "127.0.0.1", port: 0), transportSecurity: .plaintext),
      services: [HealthService(state: state)])
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await server.serve() }
      let address = try #require(try await server.listeningAddress?.ipv4)
      let transport = try HTTP2ClientTransport.Posix(
        target: .ipv4(address: address.host, port: address.port), transportSecurity: .plaintext)
      try await withGRPCClient(transport: transport) { client in
        await watchThenLeave(Grpc_Health_V1_Health.Client(wrapping: client), state)
        try await waitUntil("the watch has ended") { state.watcherCount == 0 }
      }
      server.beginGracefulShutdown()
      try await group.waitForAll()
    }
  }

  private func watchThenLeave(
    _ client: Grpc_Health_V1_Health.Client<HTTP2ClientTransport.Posix>, _ state: HealthState
  ) async {
    await withTaskGroup(of: Void.self) { group in
      let (seen, see) = AsyncStream<Grpc_Health_V1_HealthCheckResponse.ServingStatus>.makeStream()
      group.addTask {
        try? await client.watch(request("")) { response in
          for try await message in response.messages { see.yield(message.status) }
        }
      }
      var statuses = seen.makeAsyncIterator()
      #expect(await statuses.next() == .notServing)
      state.set(.serving)
      #expect(await statuses.next() == .serving)
      state.set(.notServing)
      #expect(await statuses.next() == .notServing)
      #expect(state.watcherCount == 1)
      group.cancelAll()
    }
  }

  @Test("Watch of an unknown service reports SERVICE_UNKNOWN and stays open")
  func watchUnknown() async throws {
    try await withHealth { client, _ in
      await withTaskGroup(of: Void.self) { group in
        let (seen, see) = AsyncStream<Grpc_Health_V1_HealthCheckResponse.ServingStatus>.makeStream()
        let hasEnded = Mutex(false)
        group.addTask {
          try? await client.watch(request("b.Service")) { response in
            for try await message in response.messages { see.yield(message.status) }
          }
          hasEnded.withLock { $0 = true }
        }
        var statuses = seen.makeAsyncIterator()
        #expect(await statuses.next() == .serviceUnknown)
        try? await Task.sleep(for: .milliseconds(50))
        #expect(!hasEnded.withLock { $0 })
        group.cancelAll()
      }
    }
  }

  @Test("Watch finally sends the newest status after many concurrent changes")
  func newest() async throws {
    try await withHealth { client, state in
      let told = Told()
      await withTaskGroup(of: Void.self) { group in
        group.addTask {
          try? await client.watch(request("")) { response in
            for try await message in response.messages { told.status = message.status }
          }
        }
        for round in 0..<200 {
          await withTaskGroup(of: Void.self) { setters in
            for setter in 0..<4 { setters.addTask { state.set((setter + round) % 2 == 0 ? .serving : .notServing) } }
          }
          let expected: Grpc_Health_V1_HealthCheckResponse.ServingStatus =
            state.status == .serving ? .serving : .notServing
          await #expect(throws: Never.self, "round \(round)") {
            try await waitUntil("the newest status is told") { told.status == expected }
          }
        }
        group.cancelAll()
      }
    }
  }

  @Test("Watch sends each change once, and nothing without a change")
  func changesOnly() async throws {
    try await withHealth { client, state in
      await withTaskGroup(of: Void.self) { group in
        let (seen, see) = AsyncStream<Grpc_Health_V1_HealthCheckResponse.ServingStatus>.makeStream()
        group.addTask {
          try? await client.watch(request("")) { response in
            for try await message in response.messages { see.yield(message.status) }
          }
        }
        var statuses = seen.makeAsyncIterator()
        #expect(await statuses.next() == .notServing)
        state.set(.notServing)
        try? await Task.sleep(for: .milliseconds(20))
        state.set(.serving)
        #expect(await statuses.next() == .serving)
        group.cancelAll()
      }
    }
  }

  @Test("Watches end when the server shuts down, NOT_SERVING last", arguments: ["", "b.Service"])
  func shutdown(service: String) async throws {
    let state = HealthState(services: [])
    state.set(.serving)
    let transport = InProcessTransport()
    try await withGRPCServer(transport: transport.server, services: [HealthService(state: state)]) { server in
      try await withGRPCClient(transport: transport.client) { grpc in
        let client = Grpc_Health_V1_Health.Client(wrapping: grpc)
        let statuses = try await client.watch(request(service)) { response in
          var statuses: [Grpc_Health_V1_HealthCheckResponse.ServingStatus] = []
          for try await message in response.messages {
            statuses.append(message.status)
            guard statuses.count == 1 else { continue }
            state.set(.notServing)
            server.beginGracefulShutdown()
          }
          return statuses
        }
        #expect(statuses == (service.isEmpty ? [.serving, .notServing] : [.serviceUnknown]))
      }
    }
    #expect(state.watcherCount == 0)
  }
}
