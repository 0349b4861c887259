import CoreMetrics
import GRPCCore
import GRPCInProcessTransport
import GRPCProtobuf
import Logging
import SwiftProtobuf
import Synchronization
import Testing
import Tracing
import WorkerProtocol

@testable import WorkerOperations
@testable import WorkerTelemetry

@Suite("CallInterceptor", .timeLimit(.minutes(15)))
struct CallInterceptorTests {
  private typealias Request = Grpc_Health_V1_HealthCheckRequest

  /// Returns the metrics, log lines and spans that calls of the health service produce.
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
        CallInterceptor(CallLog(metrics: registry, logger: logger, quiet: quiet)),
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
    let codes = calls.series.map { $0.dimensions.map { "\($0.name)=\($0.value)" } }
    let check = "rpc.method=grpc.health.v1.Health/Check"
    #expect(codes.contains([check, "rpc.response.status_code=OK", "rpc.system.name=grpc"]))
    // A fault of the client is no error of the server.
    #expect(codes.contains([check, "rpc.response.status_code=NOT_FOUND", "rpc.system.name=grpc"]))
    #expect(calls.series.allSatisfy { if case .histogram(let value) = $0.value { value.count == 1 } else { false } })
    #expect(lines.count == spans.count && lines.count >= 2)
    // Each leads to a trace.
    let exemplars = calls.series.compactMap { series -> [Exemplar]? in
      if case .histogram(let value) = series.value { value.exemplars.compactMap(\.self) } else { nil }
    }
    #expect(Set(exemplars.joined().map(\.spanID)) == Set(spans.map(\.context.spanID)))
    #expect(lines.allSatisfy { $0.message == "call" && $0.level == (isQuiet ? .debug : .info) })
    #expect(Set(lines.map(\.span?.spanID)) == Set(spans.map(\.context.spanID)))
    let refused = try #require(
      lines.first { $0.metadata.contains { $0.key == "code" && "\($0.value)" == "NOT_FOUND" } })
    #expect(refused.metadata.map(\.key) == ["code", "duration_ms", "error", "method", "peer"])
  }

  /// Returns the log line of a call whose handler throws an error, or answers with it, as another interceptor does.
  private func line(of error: any Error, isAnswer: Bool = false) async throws -> LogLine {
    let lines = Mutex<[LogLine]>([])
    let logger = Logger(label: "test") { label in
      WorkerLogHandler(
        label: label, format: .json, export: LogExport { line in lines.withLock { $0.append(line) } }, write: { _ in })
    }
    let context = ServerContext(
      descriptor: MethodDescriptor(fullyQualifiedService: "a.Service", method: "Call"), remotePeer: "in-process",
      localPeer: "in-process", cancellation: ServerContext.RPCCancellationHandle())
    let messages = RPCAsyncSequence<Int, any Error>(wrapping: AsyncThrowingStream { $0.finish() })
    let interceptor = CallInterceptor(CallLog(metrics: NOOPMetricsHandler.instance, logger: logger))
    do {
      let response = try await interceptor.intercept(
        request: StreamingServerRequest(metadata: [:], messages: messages), context: context
      ) { _, _ -> StreamingServerResponse<Int> in
        guard isAnswer, let error = error as? RPCError else { throw error }
        return StreamingServerResponse(error: error)
      }
      if case .success = response.accepted { Issue.record("the error is lost") }
      #expect(isAnswer)
    } catch { #expect(!isAnswer) }
    let all = lines.withLock { $0 }
    #expect(all.count == 1)
    return try #require(all.first)
  }

  @Test(
    "a unary call without one message is the client's fault, also behind another interceptor",
    arguments: ["Empty stream.", "Too many messages."], [false, true])
  func messageCount(message: String, isAnswer: Bool) async throws {
    let line = try await line(of: RPCError(code: .internalError, message: message), isAnswer: isAnswer)
    #expect(line.level == .info)
    #expect(line.metadata.contains { $0.key == "code" && "\($0.value)" == "INVALID_ARGUMENT" })
    let defect = try await self.line(of: RPCError(code: .internalError, message: "a defect"))
    #expect(defect.level == .error)
  }

  @Test("logs the reason, the field and the limit of an error as fields, and no Swift value")
  func fields() async throws {
    let status = GoogleRPCStatus(
      code: .failedPrecondition, message: "400000000 pixels are more than the limit of 100000000",
      details: [
        .errorInfo(
          reason: "LIMIT_EXCEEDED", domain: "a",
          metadata: [
            "field": "image", "limit_name": "max_pixels", "limit": "100000000", "value": "400000000", "other": "x",
          ]),
        .retryInfo(delay: .seconds(1)),
      ])
    let rpcError = RPCError(code: status.code, message: status.message, metadata: status.rpcErrorMetadata)
    for error in [status, rpcError] as [any Error] {
      let line = try await line(of: error)
      let fields = Dictionary(uniqueKeysWithValues: line.metadata.map { ($0.key, "\($0.value)") })
      #expect(fields["error"] == status.message && fields["reason"] == "LIMIT_EXCEEDED" && fields["field"] == "image")
      #expect(fields["limit_name"] == "max_pixels" && fields["limit"] == "100000000")
      #expect(fields["code"] == "FAILED_PRECONDITION" && fields["other"] == nil && fields["cause"] == nil)
      let json = LogFormat.json.format(line)
      #expect(json.contains("\"limit\":100000000,") && json.contains("\"value\":400000000"))
      #expect(!json.contains("GoogleRPCStatus") && !json.contains("ErrorInfo"))
    }
  }

  @Test("logs at `error` only what no client can cause", arguments: 1...16)
  func level(code: Int) async throws {
    let code = try #require(Status.Code(rawValue: code).flatMap { RPCError.Code($0) })
    let defects: Set<RPCError.Code> = [.unknown, .internalError, .dataLoss]
    let status = GoogleRPCStatus(code: code, message: "m", details: [.errorInfo(reason: "R", domain: "a")])
    for error in [status, RPCError(code: code, message: "m")] as [any Error] {
      #expect(try await line(of: error).level == (defects.contains(code) ? .error : .info), "\(code)")
    }
  }

  @Test("logs an error of unknown kind at `error`, by its description")
  func unforeseen() async throws {
    struct Unforeseen: Error, CustomStringConvertible {
      let description = "the disk is on fire"
    }
    let line = try await line(of: Unforeseen())
    #expect(line.level == .error)
    #expect(line.metadata.first { $0.key == "error" }.map { "\($0.value)" } == "the disk is on fire")
  }
}
