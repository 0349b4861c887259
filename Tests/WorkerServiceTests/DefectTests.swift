import CoreMetrics
import Foundation
import GRPCCore
import GRPCInProcessTransport
import GRPCProtobuf
import Logging
import SwiftProtobuf
import Synchronization
import TestSupport
import Testing
import Tracing
import WorkerOperations
import WorkerProtocol
import WorkerService
import WorkerTelemetry

@Suite("An error that nobody foresaw")
struct DefectTests {
  private static let secret = "the disk is on fire"

  /// Runs `body` with a client of a service whose first write in each call fails; returns the log and the spans.
  /// - `isClientGone`: whether the call is cancelled before.
  private func withDefectiveWorker(
    isClientGone: Bool = false, _ body: (Client) async throws -> Void
  ) async throws -> (log: [String], spans: [FinishedSpan]) {
    let lines = Mutex<[String]>([])
    let spans = Mutex<[FinishedSpan]>([])
    let logger = Logger(label: "test") { label in
      WorkerLogHandler(label: label, format: .json, write: { line in lines.withLock { $0.append(line) } })
    }
    let tracer = RecordingTracer { span in spans.withLock { $0.append(span) } }
    let environment = WorkerEnvironment(memoryLimit: 64 << 20, threadCount: 2).with {
      $0.tracer = tracer
      $0.traceID = { $0.traceID }
    }
    let transport = InProcessTransport()
    try await withGRPCServer(
      transport: transport.server, services: [ImageWorkerService(environment: environment)],
      interceptors: [
        TracingInterceptor(tracer: tracer),
        CallInterceptor(CallLog(metrics: NOOPMetricsHandler.instance, logger: logger)),
        DefectInterceptor(defect: Defect(description: Self.secret), isClientGone: isClientGone),
      ]
    ) { _ in
      try await withGRPCClient(transport: transport.client) { try await body(Client(wrapping: $0)) }
    }
    return (lines.withLock { $0 }, spans.withLock { $0 })
  }

  @Test("is logged, but not sent to the client")
  func call() async throws {
    let (log, spans) = try await withDefectiveWorker { client in
      let status = await failure { _ = try await client.process(Fixture.bytes("photo.png"), preset: "favicon") }
      #expect(status?.code == .internalError && status?.details.first?.errorInfo?.reason == "INTERNAL_DEFECT")
      #expect(status.map { !String(describing: $0).contains(Self.secret) } == true)
    }
    let line = try #require(log.first { $0.contains("\"message\":\"call\"") })
    let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    #expect(object["level"] as? String == "error" && object["code"] as? String == "INTERNAL")
    #expect(object["cause"] as? String == Self.secret)
    #expect(spans.contains { $0.kind == .server && $0.exceptions.contains { $0.contains(Self.secret) } })
  }

  @Test("is none if the client is gone", arguments: [false, true])
  func cancelled(isBatch: Bool) async throws {
    let (log, _) = try await withDefectiveWorker(isClientGone: true) { client in
      let image = Fixture.bytes("photo.png")
      _ = await failure {
        if isBatch {
          _ = try await client.batch([.start("a", preset: "favicon"), .chunk("a", image), .end("a")])
        } else {
          _ = try await client.process(image, preset: "favicon")
        }
      }
    }
    let line = try #require(log.first { $0.contains("\"message\":\"call\"") })
    #expect(line.contains("\"code\":\"CANCELLED\"") && !line.contains("DEFECT"), "\(line)")
  }

  @Test("is recorded on the span of the batch item that it ended")
  func item() async throws {
    let (_, spans) = try await withDefectiveWorker { client in
      // Sent in chunks, so that its header is written first and separately.
      let bytes = Fixture.bytes("photo-420.jpg")
      let items = try await client.batch([
        .start("a", preset: "favicon"), .chunk("a", bytes.prefix(4000)), .chunk("a", bytes.dropFirst(4000)), .end("a"),
      ])
      let error = try #require(items["a"]?.errors.first)
      #expect(try error.reasonAndField.first == "INTERNAL_DEFECT" && error.code == 13)
      #expect(!error.debugDescription.contains(Self.secret))
    }
    let span = try #require(spans.first { $0.name == "item" })
    #expect(span.exceptions == [Self.secret])
  }
}

extension FinishedSpan {
  fileprivate var exceptions: [String] {
    events.compactMap { event in
      if case .string(let message) = event.attributes["exception.message"]?.toSpanAttribute() { message } else { nil }
    }
  }
}

private struct Defect: Error, CustomStringConvertible {
  var description: String
}

/// Makes the first write of each call fail.
private struct DefectInterceptor: ServerInterceptor {
  let defect: Defect
  let isClientGone: Bool

  func intercept<Input: Sendable, Output: Sendable>(
    request: StreamingServerRequest<Input>,
    context: ServerContext,
    next: @Sendable (StreamingServerRequest<Input>, ServerContext) async throws -> StreamingServerResponse<Output>
  ) async throws -> StreamingServerResponse<Output> {
    var response = try await next(request, context)
    guard case .success(var contents) = response.accepted else { return response }
    contents.producer = { [producer = contents.producer, defect] writer in
      let cancellation = isClientGone ? context.cancellation : nil
      return try await producer(
        RPCWriter(wrapping: DefectiveWriter(writer: writer, defect: defect, cancellation: cancellation)))
    }
    response.accepted = .success(contents)
    return response
  }
}

private final class DefectiveWriter<Element: Sendable>: RPCWriterProtocol {
  private let writer: RPCWriter<Element>
  private let defect: Defect
  private let cancellation: ServerContext.RPCCancellationHandle?
  private let isBroken = Mutex(true)

  init(writer: RPCWriter<Element>, defect: Defect, cancellation: ServerContext.RPCCancellationHandle?) {
    self.writer = writer
    self.defect = defect
    self.cancellation = cancellation
  }

  func write(_ element: Element) async throws { try await write(contentsOf: [element]) }

  func write(contentsOf elements: some Sequence<Element>) async throws {
    let isFirst = isBroken.withLock { isBroken in
      defer { isBroken = false }
      return isBroken
    }
    cancellation?.cancel()
    // The transport of a client that is gone takes nothing any more.
    if isFirst || cancellation != nil { throw defect }
    try await writer.write(contentsOf: elements)
  }
}
