import GRPCCore
import GRPCInProcessTransport
import InMemoryTracing
import SwiftProtobuf
import Testing
import Tracing
import WorkerOperations
import WorkerProtocol

@Suite("Tracing", .timeLimit(.minutes(15)))
struct TracingTests {
  typealias Client = Grpc_Health_V1_Health.Client<InProcessTransport.Client>

  /// A traced service whose behavior is selected by the name in the request.
  private struct Traced: Grpc_Health_V1_Health.SimpleServiceProtocol {
    let tracer: InMemoryTracer

    struct Unforeseen: Error {}

    private func answer(_ name: String) throws -> Grpc_Health_V1_HealthCheckResponse {
      switch name {
      case "": return .with { $0.status = .serving }
      case "INVALID_ARGUMENT": throw RPCError(code: .invalidArgument, message: name)
      case "INTERNAL": throw RPCError(code: .internalError, message: name)
      case "UNAVAILABLE": throw RPCError(code: .unavailable, message: name)
      default: throw Unforeseen()
      }
    }

    func check(
      request: Grpc_Health_V1_HealthCheckRequest, context: ServerContext
    ) async throws -> Grpc_Health_V1_HealthCheckResponse {
      try tracer.withSpan("work") { _ in try answer(request.service) }
    }

    func list(
      request: Grpc_Health_V1_HealthListRequest, context: ServerContext
    ) async throws -> Grpc_Health_V1_HealthListResponse { Grpc_Health_V1_HealthListResponse() }

    func watch(
      request: Grpc_Health_V1_HealthCheckRequest, response: RPCWriter<Grpc_Health_V1_HealthCheckResponse>,
      context: ServerContext
    ) async throws {
      try await response.write(Grpc_Health_V1_HealthCheckResponse())
      try await tracer.withSpan("work") { _ in try await response.write(answer(request.service)) }
    }
  }

  /// Returns the spans of one call, the server span first.
  private func spans(
    untraced: Set<String> = [], _ call: (Client) async throws -> Void
  ) async throws -> [FinishedInMemorySpan] {
    let tracer = InMemoryTracer()
    let transport = InProcessTransport()
    try await withGRPCServer(
      transport: transport.server, services: [Traced(tracer: tracer)],
      interceptors: [TracingInterceptor(tracer: tracer, untraced: untraced)]
    ) { _ in
      try await withGRPCClient(transport: transport.client) { try await call(Client(wrapping: $0)) }
    }
    #expect(tracer.activeSpans.isEmpty)
    return tracer.finishedSpans.sorted { $0.kind == .server && $1.kind != .server }
  }

  private func watch(_ client: Client, _ name: String) async throws {
    try await client.watch(.with { $0.service = name }) { response in
      for try await _ in response.messages {}
    }
  }

  private func check(
    _ span: FinishedInMemorySpan, method: String, code: String, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(span.kind == .server, sourceLocation: sourceLocation)
    #expect(span.operationName == "grpc.health.v1.Health/\(method)", sourceLocation: sourceLocation)
    for (key, value) in [
      ("rpc.system.name", "grpc"), ("rpc.method", "grpc.health.v1.Health/\(method)"),
      ("rpc.response.status_code", code),
    ] {
      #expect(span.attributes.get(key) == value.toSpanAttribute(), "\(key)", sourceLocation: sourceLocation)
    }
  }

  @Test("opens a server span that is current while the handler runs")
  func unary() async throws {
    let spans = try await spans { _ = try await $0.check(Grpc_Health_V1_HealthCheckRequest()) }
    try #require(spans.count == 2)
    check(spans[0], method: "Check", code: "OK")
    #expect(spans[0].parentSpanID == nil && spans[0].status == nil && spans[0].errors.isEmpty)
    #expect(spans[0].attributes.get("error.type") == nil)
    #expect(spans[1].operationName == "work" && spans[1].parentSpanID == spans[0].spanID)
  }

  @Test("stays open and current while a stream of responses is produced")
  func streaming() async throws {
    let spans = try await spans { try await watch($0, "") }
    try #require(spans.count == 2)
    check(spans[0], method: "Watch", code: "OK")
    #expect(spans[1].operationName == "work" && spans[1].parentSpanID == spans[0].spanID)
    #expect(spans[0].endInstant.nanosecondsSinceEpoch >= spans[1].endInstant.nanosecondsSinceEpoch)
  }

  @Test(
    "records the code of every failure, and an error where the fault is not the client's",
    arguments: [
      ("INVALID_ARGUMENT", false), ("INTERNAL", true), ("UNAVAILABLE", true), ("UNKNOWN", true),
    ], ["Check", "Watch"])
  func failure(code: (name: String, isFault: Bool), method: String) async throws {
    let spans = try await spans { client in
      await #expect(throws: RPCError.self) {
        if method == "Watch" {
          try await watch(client, code.name)
        } else {
          _ = try await client.check(.with { $0.service = code.name })
        }
      }
    }
    let span = try #require(spans.first)
    check(span, method: method, code: code.name)
    #expect(span.errors.count == 1)
    #expect(span.status?.code == (code.isFault ? .error : nil))
    #expect(span.attributes.get("error.type") == (code.isFault ? code.name.toSpanAttribute() : nil))
  }

  @Test("continues the trace that the call's metadata names")
  func parent() async throws {
    let metadata: Metadata = [InMemoryTracer.traceIDKey: "a-trace", InMemoryTracer.spanIDKey: "a-span"]
    let spans = try await spans { client in
      _ = try await client.check(Grpc_Health_V1_HealthCheckRequest(), metadata: metadata)
    }
    #expect(spans.map(\.traceID) == ["a-trace", "a-trace"])
    #expect(spans.first?.parentSpanID == "a-span")
  }

  @Test("does not trace excluded services")
  func untraced() async throws {
    let spans = try await spans(untraced: ["grpc.health.v1.Health"]) { client in
      _ = try await client.check(Grpc_Health_V1_HealthCheckRequest())
    }
    #expect(spans.map(\.operationName) == ["work"] && spans.first?.parentSpanID == nil)
  }

  @Test("ends the span as cancelled when the response is dropped before it is produced")
  func dropped() async throws {
    let tracer = InMemoryTracer()
    let method = MethodDescriptor(fullyQualifiedService: "a.Service", method: "Call")
    let context = ServerContext(
      descriptor: method, remotePeer: "in-process", localPeer: "in-process",
      cancellation: ServerContext.RPCCancellationHandle())
    let messages = RPCAsyncSequence<Int, any Error>(wrapping: AsyncThrowingStream { $0.finish() })
    _ = try await TracingInterceptor(tracer: tracer).intercept(
      request: StreamingServerRequest(metadata: [:], messages: messages), context: context
    ) { _, _ in
      StreamingServerResponse(of: Int.self) { _ in [:] }
    }
    #expect(tracer.activeSpans.isEmpty)
    #expect(
      tracer.finishedSpans.map { $0.attributes.get("rpc.response.status_code") } == ["CANCELLED".toSpanAttribute()])
  }
}
