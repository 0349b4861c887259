package import GRPCCore
internal import ServiceContextModule
package import Tracing

/// Opens a server span for each call, from its metadata's trace context, and keeps it current while the call runs.
///
/// Attributes follow the OpenTelemetry semantic conventions for RPC of 2026 (`rpc.system.name`, a fully-qualified
/// `rpc.method`, a string `rpc.response.status_code`, `error.type`). Health checks and reflection are not traced.
package struct TracingInterceptor: ServerInterceptor {
  private let tracer: any Tracer
  private let untraced: Set<String>

  /// - Parameters:
  ///   - tracer: where spans go.
  ///   - untraced: full names of services whose calls get no span.
  package init(
    tracer: any Tracer = InstrumentationSystem.tracer,
    untraced: Set<String> = [
      "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection",
    ]
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
    span.attributes["rpc.system.name"] = "grpc"
    span.attributes["rpc.method"] = method.fullyQualifiedMethod
    return try await ServiceContext.$current.withValue(span.context) {
      do {
        return traced(try await next(request, context), span)
      } catch {
        Self.end(span, with: error)
        throw error
      }
    }
  }

  /// The handler of a streaming call returns before its work is done, which its producer does: the span covers both.
  private func traced<Output: Sendable>(
    _ response: StreamingServerResponse<Output>, _ span: any Span
  ) -> StreamingServerResponse<Output> {
    var response = response
    switch response.accepted {
    case .failure(let error): Self.end(span, with: error)
    case .success(var contents):
      let produce = contents.producer
      contents.producer = { writer in
        try await ServiceContext.$current.withValue(span.context) {
          do {
            let metadata = try await produce(writer)
            Self.end(span, with: nil)
            return metadata
          } catch {
            Self.end(span, with: error)
            throw error
          }
        }
      }
      response.accepted = .success(contents)
    }
    return response
  }

  private static func end(_ span: any Span, with error: (any Error)?) {
    let code = error.map(Self.code)
    span.attributes["rpc.response.status_code"] = code?.name ?? "OK"
    if let error, let code {
      span.attributes["error.type"] = code.name
      span.recordError(error)
      span.setStatus(SpanStatus(code: .error, message: code.name))
    }
    span.end()
  }

  private static func code(_ error: any Error) -> RPCError.Code {
    switch error {
    case let error as RPCError: error.code
    case let error as any RPCErrorConvertible: error.rpcErrorCode
    default: .unknown
    }
  }
}

extension RPCError.Code {
  /// The code as the wire specification spells it, as in `INVALID_ARGUMENT`.
  fileprivate var name: String {
    switch self {
    case .cancelled: "CANCELLED"
    case .unknown: "UNKNOWN"
    case .invalidArgument: "INVALID_ARGUMENT"
    case .deadlineExceeded: "DEADLINE_EXCEEDED"
    case .notFound: "NOT_FOUND"
    case .alreadyExists: "ALREADY_EXISTS"
    case .permissionDenied: "PERMISSION_DENIED"
    case .resourceExhausted: "RESOURCE_EXHAUSTED"
    case .failedPrecondition: "FAILED_PRECONDITION"
    case .aborted: "ABORTED"
    case .outOfRange: "OUT_OF_RANGE"
    case .unimplemented: "UNIMPLEMENTED"
    case .internalError: "INTERNAL"
    case .unavailable: "UNAVAILABLE"
    case .dataLoss: "DATA_LOSS"
    case .unauthenticated: "UNAUTHENTICATED"
    default: "\(rawValue)"
    }
  }
}

/// Reads trace headers from a call's metadata.
private struct MetadataExtractor: Extractor {
  func extract(key: String, from metadata: Metadata) -> String? {
    metadata[stringValues: key].first { _ in true }
  }
}
