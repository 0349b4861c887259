import GRPCCore
import GRPCInProcessTransport
import Logging
import SwiftProtobuf
import Synchronization
import Testing
import Tracing
import WorkerProtocol

@testable import WorkerOperations
@testable import WorkerTelemetry

@Suite("CallInterceptor")
struct CallInterceptorTests {
  private typealias Request = Grpc_Health_V1_HealthCheckRequest

  /// What calls of the health service leave behind: measurements, and lines of the log.
  private func observe(
    quiet: Set<String>, _ body: (Grpc_Health_V1_Health.Client<InProcessTransport.Client>) async throws -> Void
  ) async throws -> (metrics: [MetricRegistry.Family], lines: [LogLine], spans: [FinishedSpan]) {
    let lines = Mutex<[LogLine]>([])
    let spans = Mutex<[FinishedSpan]>([])
    var logger = Logger(label: "test") { label in
      WorkerLogHandler(
        label: label, format: .text, export: LogExport { line in lines.withLock { $0.append(line) } }, write: { _ in })
    }
    logger.logLevel = .debug
    let registry = MetricRegistry()
    let tracer = RecordingTracer { span in spans.withLock { $0.append(span) } }
    let transport = InProcessTransport()
    try await withGRPCServer(
      transport: transport.server, services: [HealthService(state: HealthState(services: []))],
      interceptors: [
        TracingInterceptor(tracer: tracer, untraced: []),
        CallInterceptor(metrics: registry, logger: logger, quiet: quiet),
      ]
    ) { _ in
      try await withGRPCClient(transport: transport.client) { try await body(.init(wrapping: $0)) }
    }
    return (registry.collect(), lines.withLock { $0 }, spans.withLock { $0 })
  }

  @Test("measures each call by method and code, and logs a line within its span", arguments: [true, false])
  func calls(isQuiet: Bool) async throws {
    let (metrics, lines, spans) = try await observe(quiet: isQuiet ? ["grpc.health.v1.Health"] : []) { client in
      _ = try await client.check(Request())
      _ = try? await client.check(.with { $0.service = "no.Such" })
      _ = try? await client.watch(Request()) { response in
        for try await _ in response.messages { return }
      }
    }
    let calls = try #require(metrics.first { $0.description.name == "rpc.server.call.duration" })
    let codes = calls.series.map { $0.dimensions.map(\.value) }
    #expect(codes.contains(["grpc.health.v1.Health/Check", "OK"]))
    #expect(codes.contains(["grpc.health.v1.Health/Check", "NOT_FOUND"]))
    #expect(calls.series.allSatisfy { if case .histogram(let value) = $0.value { value.count == 1 } else { false } })
    #expect(lines.count == spans.count && lines.count >= 2)
    #expect(lines.allSatisfy { $0.message == "call" && $0.level == (isQuiet ? .debug : .info) })
    #expect(Set(lines.map(\.span?.spanID)) == Set(spans.map(\.context.spanID)))
    let refused = try #require(
      lines.first { $0.metadata.contains { $0.key == "code" && "\($0.value)" == "NOT_FOUND" } })
    #expect(refused.metadata.map(\.key) == ["code", "duration_ms", "error", "method", "peer"])
  }
}
