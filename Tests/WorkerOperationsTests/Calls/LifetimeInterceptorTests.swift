import CoreMetrics
import GRPCCore
import Logging
import Synchronization
import Testing
import Tracing

@testable import WorkerOperations

@Suite("LifetimeInterceptor")
struct LifetimeInterceptorTests {
  private final class Object: Sendable {}

  /// Returns whether the handler of a call of a service has a lifetime.
  private func hasLifetime(_ service: String) async throws -> Bool {
    let log = CallLog(metrics: NOOPMetricsHandler.instance, logger: Logger(label: "test"))
    var metadata = Metadata()
    metadata.addString(String(log.records.add(CallRecord())), forKey: CallRecords.key)
    let request = StreamingServerRequest(
      metadata: metadata, messages: RPCAsyncSequence(wrapping: AsyncThrowingStream<Int, any Error> { $0.finish() }))
    let method = MethodDescriptor(
      service: ServiceDescriptor(fullyQualifiedService: service), method: "M", type: .unary)
    let found = Mutex(false)
    _ = try await withServerContextRPCCancellationHandle { handle in
      let context = ServerContext(descriptor: method, remotePeer: "", localPeer: "", cancellation: handle)
      return try await LifetimeInterceptor(log, services: ["a.B"]).intercept(request: request, context: context) {
        _, _ in
        found.withLock { $0 = ServiceContext.current?.call.record != nil }
        return StreamingServerResponse<Int>(error: RPCError(code: .aborted, message: ""))
      }
    }
    return found.withLock { $0 }
  }

  @Test("gives calls of its services a lifetime, and no others")
  func services() async throws {
    #expect(try await hasLifetime("a.B"))
    #expect(try await !hasLifetime("a.C"))
  }

  @Test("objects are kept until the stream is closed, and not afterwards")
  func lifetimes() {
    let record = CallRecord()
    weak var kept: Object?
    do {
      let object = Object()
      kept = object
      record.keep(object)
    }
    #expect(kept != nil)
    record.close()
    #expect(kept == nil)
    do {
      let object = Object()
      kept = object
      record.keep(object)
    }
    #expect(kept == nil)
  }
}
