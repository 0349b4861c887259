import Foundation
import GRPCCore
import GRPCNIOTransportHTTP2Posix
import Logging
import NIOCore
import Testing
import WorkerProtocol

@testable import WorkerOperations

@Suite("UnixSocketFile", .timeLimit(.minutes(15)))
struct UnixSocketFileTests {
  private let folder: URL
  private var path: String { folder.appendingPathComponent("s").path }

  init() throws {
    folder = URL(fileURLWithPath: "/tmp/iw-\(UUID().uuidString.prefix(8))")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  @Test("a path that is too long is refused with its size and the maximum")
  func longPath() throws {
    let longest = String(repeating: "a", count: ListenError.maxPathByteCount)
    _ = try SocketAddress(unixDomainSocketPath: longest)
    do {
      _ = try SocketAddress(unixDomainSocketPath: longest + "a")
      Issue.record("a path of \(longest.utf8.count + 1) bytes is accepted")
    } catch {
      let refusal = ListenError(error, address: .unix(path: longest + "a", permissions: 0o600))
      #expect(refusal.description == "--unix-socket \(longest)a has 104 bytes; it must have at most 103")
    }
  }

  /// Runs a server on the path while `body` runs.
  private func serve(permissions: UInt32 = 0o600, _ body: @escaping @Sendable () async throws -> Void) async throws {
    let state = HealthState(services: [])
    state.set(.serving)
    let limits = ConnectionLimits(logger: Logger(label: "test"))
    let transport = HTTP2ServerTransport.Custom(
      listenerFactory: WorkerListener(address: .unix(path: path, permissions: permissions), limits: limits),
      config: .guarded)
    let server = GRPCServer(
      transport: transport, services: [HealthService(state: state)],
      interceptors: [ListenerInterceptor(limits.callLog)])
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask(executorPreference: EventLoopExecutor.shared) { try await server.serve() }
      guard await transport.listeningAddress != nil else { return try await group.waitForAll() }
      try await body()
      server.beginGracefulShutdown()
      try await group.waitForAll()
    }
  }

  private func check() async throws {
    let client = try HTTP2ClientTransport.Posix(target: .unixDomainSocket(path: path), transportSecurity: .plaintext)
    try await withGRPCClient(transport: client) { client in
      let answer = try await Grpc_Health_V1_Health.Client(wrapping: client).check(Grpc_Health_V1_HealthCheckRequest())
      #expect(answer.status == .serving)
    }
  }

  private var permissions: Int {
    get throws {
      try #require(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
    }
  }

  @Test(
    "the socket serves, has its permissions, and is removed at the end", arguments: [0o600, 0o660, 0o777] as [UInt32])
  func serves(permissions: UInt32) async throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    try await serve(permissions: permissions) {
      #expect(try self.permissions == Int(permissions))
      try await check()
    }
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  /// Binds a socket to the path in a process that ends at once.
  private func bindElsewhere() throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
    process.arguments = ["-c", "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])", path]
    try process.run()
    process.waitUntilExit()
  }

  @Test("a socket that a killed process left behind is replaced")
  func stale() async throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    try bindElsewhere()
    #expect(FileManager.default.fileExists(atPath: path))
    try await serve { try await check() }
  }

  @Test("a socket that is in use, and a file that is no socket, are not replaced")
  func refused() async throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    try await serve {
      await #expect { try await self.serve {} } throws: { "\($0)".contains("another process listens on it") }
      try await check()
    }
    try Data("text".utf8).write(to: URL(fileURLWithPath: path))
    await #expect { try await serve {} } throws: { "\($0)".contains("the path exists and is not a socket") }
    #expect(FileManager.default.contents(atPath: path) == Data("text".utf8))
  }

  @Test("the end of a worker leaves the socket of its successor")
  func successor() async throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    try await serve {
      try FileManager.default.removeItem(atPath: path)
      try bindElsewhere()
    }
    #expect(FileManager.default.fileExists(atPath: path))
  }
}
