package import GRPCCore
internal import ServiceContextModule
package import Tracing
internal import WorkerProtocol

/// Opens a server span for each call and keeps it current while the call runs.
///
/// The parent comes from the trace context in the call's metadata. Attributes follow the OpenTelemetry semantic
/// conventions for RPC, in the version given by `SemanticConventions` in WorkerTelemetry. Health checks and reflection
/// are not traced.
package struct TracingInterceptor: ServerInterceptor {
  private let tracer: any Tracer
  private let untraced: Set<String>

  /// Creates an interceptor.
  ///
  /// - Parameters:
  ///   - tracer: The tracer that creates the spans.
  ///   - untraced: Full names of the services whose calls get no span.
  package init(
    tracer: any Tracer = InstrumentationSystem.tracer, untraced: Set<String> = OperationalServices.names
  ) {
    self.tracer = tracer
    self.untraced = untraced
  }

  package func intercept<Input: Sendable, Output: Sendable>(
    request: StreamingServerRequest<Input>,
    context: ServerContext,
    next: @Sendable (StreamingServerRequest<Input>, ServerContext) async throws -> StreamingServerResponse<Output>
  ) async throws -> StreamingServerResponse<Output> {
    let method = context.descriptor
    guard !untraced.contains(method.service.fullyQualifiedService) else { return try await next(request, context) }
    var parent = ServiceContext.current ?? .topLevel
    tracer.extract(request.metadata, into: &parent, using: MetadataExtractor())
    let span = tracer.startSpan(method.fullyQualifiedMethod, context: parent, ofKind: .server)
    let end = CallEnd(context, parent.call) { [peer = context.remotePeer] code, error in
      Self.end(span, method, peer: peer, code, error)
    }
    return try await ServiceContext.$current.withValue(span.context) {
      do { return try await next(request, context).telling(end) } catch {
        end.fail(error)
        throw error
      }
    }
  }

  /// Sets all attributes at once and ends the span; changing the attributes of a span copies them.
  private static func end(
    _ span: any Span, _ method: MethodDescriptor, peer: String, _ code: RPCError.Code?, _ error: (any Error)?
  ) {
    guard span.isRecording else { return }
    let peer = Peer(peer)
    var all = [String: SpanAttribute](minimumCapacity: 7)
    all["rpc.system.name"] = "grpc"
    all["rpc.method"] = .string(method.fullyQualifiedMethod)
    all["network.peer.address"] = .string(peer.address)
    if let port = peer.port { all["network.peer.port"] = .int64(Int64(port)) }
    if let caller = span.context.call?.callerName { all["enduser.id"] = .string(caller) }
    all["rpc.response.status_code"] = .string(code.name)
    if let error { span.recordError(error) }
    if let code, code.isServerFault {
      all["error.type"] = .string(code.name)
      span.setStatus(SpanStatus(code: .error, message: code.name))
    }
    span.attributes = SpanAttributes(all)
    span.end()
  }
}

/// The gRPC services for operating the worker: health checks, reflection and load reports.
package enum OperationalServices {
  /// Full names of the services.
  package static let names: Set<String> = [
    "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection",
    LoadReportService.method.service.fullyQualifiedService,
  ]

  /// The methods of the services.
  package static let methods =
    Grpc_Health_V1_Health.Method.descriptors + ReflectionService.methods + [LoadReportService.method]
}

/// Reads trace context headers from a call's metadata.
struct MetadataExtractor: Extractor {
  /// Returns all values of a key, joined by commas as in HTTP; trace state may be split over several headers.
  func extract(key: String, from metadata: Metadata) -> String? {
    let values = Array(metadata[stringValues: key])
    return values.isEmpty ? nil : values.joined(separator: ",")
  }
}

/// The remote end of a connection, parsed from gRPC's notation.
///
/// Examples: `ipv4:127.0.0.1:50051`, `ipv6:[::1]:50051`, `unix:/run/socket`.
struct Peer: Equatable {
  /// IP address without brackets, or path of a Unix socket.
  var address: String
  /// Port number; `nil` for a Unix socket or an address without a port.
  var port: Int?

  init(_ peer: String) {
    let text = peer.utf8
    let rest = text.firstIndex(of: UInt8(ascii: ":")).map { text[text.index(after: $0)...] } ?? text[...]
    guard peer.hasPrefix("ipv4:") || peer.hasPrefix("ipv6:"), let colon = rest.lastIndex(of: UInt8(ascii: ":")) else {
      address = rest.isEmpty ? peer : String(Substring(rest))
      port = nil
      return
    }
    var host = rest[..<colon]
    if host.first == UInt8(ascii: "["), host.last == UInt8(ascii: "]") { host = host.dropFirst().dropLast() }
    address = String(Substring(host))
    port = Int(Substring(rest[rest.index(after: colon)...]))
  }
}
