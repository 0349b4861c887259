package import GRPCCore
internal import ProtobufWire

/// The service `xds.service.orca.v3.OpenRcaService`: load reports at an interval, for balancers that do not read those of
/// calls.
///
/// Source: gRFC A51. Its messages are so small that they are read and written by hand; reflection does not list it.
package struct LoadReportService: RegistrableRPCService {
  static let method = MethodDescriptor(
    service: ServiceDescriptor(fullyQualifiedService: "xds.service.orca.v3.OpenRcaService"),
    method: "StreamCoreMetrics", type: .serverStreaming)

  /// The shortest interval, and the one without a request for another.
  private static let minimum = Duration.seconds(1)
  private static let fallback = Duration.seconds(30)

  private let meter: LoadMeter

  /// Creates a service that reports what `meter` measures.
  package init(_ meter: LoadMeter) { self.meter = meter }

  /// Registers the only method.
  package func registerMethods<Transport: ServerTransport>(with router: inout RPCRouter<Transport>) {
    router.registerHandler(
      forMethod: Self.method, deserializer: IntervalDeserializer(), serializer: ReportSerializer(),
      handler: { [meter] request, context in
        var messages = request.messages.makeAsyncIterator()
        guard let requested = try await messages.next() else {
          throw RPCError(code: .invalidArgument, message: "the call must have exactly one request message")
        }
        let interval = max(requested ?? Self.fallback, Self.minimum)
        return StreamingServerResponse { writer in
          try await Self.stream(meter, every: interval, to: writer, context.cancellation)
          return [:]
        }
      })
  }

  /// Sends reports until the client leaves or the worker drains.
  private static func stream(
    _ meter: LoadMeter, every interval: Duration, to writer: RPCWriter<LoadReport>,
    _ cancellation: ServerContext.RPCCancellationHandle
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        while true {
          try await writer.write(meter.report)
          try await Task.sleep(for: interval)
        }
      }
      group.addTask { try await cancellation.cancelled }
      defer { group.cancelAll() }
      try await group.next()
    }
  }
}

/// Reads the interval of an `OrcaLoadReportRequest`; `nil` if it has none.
private struct IntervalDeserializer: MessageDeserializer {
  func deserialize<Bytes: GRPCContiguousBytes>(_ serialized: Bytes) throws -> Duration? {
    try serialized.withUnsafeBytes { buffer in
      do throws(WireReader.Failure) {
        let bytes = RawSpan(_unsafeBytes: buffer)
        let fields = try WireReader.fields(of: bytes, in: 0..<buffer.count, maxCount: 64)
        guard let range = fields.soleContents(of: 1) else { return nil }
        var interval = Duration.zero
        for field in try WireReader.fields(of: bytes, in: range, maxCount: 64) where field.type == .varint {
          // A negative or enormous duration is as good as none; 68 years suffice.
          let value = Int64(Int32(clamping: Int64(bitPattern: try WireReader.varint(field, of: bytes))))
          switch field.number {
          case 1: interval += .seconds(value)
          case 2: interval += .nanoseconds(value)
          default: break
          }
        }
        return interval > .zero ? min(interval, .seconds(Int64(Int32.max))) : nil
      } catch {
        throw RPCError(code: .invalidArgument, message: "the request is not an OrcaLoadReportRequest")
      }
    }
  }
}

private struct ReportSerializer: MessageSerializer {
  func serialize<Bytes: GRPCContiguousBytes>(_ report: LoadReport) throws -> Bytes { Bytes(report.bytes) }
}
