package import GRPCCore
internal import ServiceContextModule
package import Tracing

/// Opens a server span for each call, from its metadata's trace context, and keeps it current while the call runs.
///
/// Attributes follow the OpenTelemetry semantic conventions for RPC (`SemanticConventions.version`). Health checks and
/// reflection are not traced.
package struct TracingInterceptor: ServerInterceptor {
  private let tracer: any Tracer
  private let untraced: Set<String>

  /// - Parameters:
  ///   - tracer: where spans go.
  ///   - untraced: full names of services whose calls get no span.
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
    let peer = Peer(context.remotePeer)
    span.updateAttributes { attributes in
      attributes["rpc.system.name"] = "grpc"
      attributes["rpc.method"] = method.fullyQualifiedMethod
      attributes["network.peer.address"] = peer.address
      attributes["network.peer.port"] = peer.port
    }
    let end = CallEnd(context.cancellation) { code, error in Self.end(span, code, error) }
    return try await ServiceContext.$current.withValue(span.context) {
      do { return try await next(request, context).telling(end) } catch {
        end.fail(error)
        throw error
      }
    }
  }

  private static func end(_ span: any Span, _ code: RPCError.Code?, _ error: (any Error)?) {
    span.attributes["rpc.response.status_code"] = code?.name ?? "OK"
    if let error { span.recordError(error) }
    if let code, code.isServerFault {
      span.attributes["error.type"] = code.name
      span.setStatus(SpanStatus(code: .error, message: code.name))
    }
    span.end()
  }
}

/// The services by which the worker is operated, not used.
package enum OperationalServices {
  /// Their full names.
  package static let names: Set<String> = [
    "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection",
  ]
}
