package import GRPCCore
internal import ServiceContextModule

/// Puts the name of a call's caller into the call's context.
///
/// Install it before the interceptors that trace and log, and only if the listener has an `Authenticator`, which
/// discards a name that a client sends.
package struct IdentityInterceptor: ServerInterceptor {
  /// Metadata key under which the listener stores the name.
  static let key = "image-worker-identity"

  package init() {}

  package func intercept<Input: Sendable, Output: Sendable>(
    request: StreamingServerRequest<Input>,
    context: ServerContext,
    next: @Sendable (StreamingServerRequest<Input>, ServerContext) async throws -> StreamingServerResponse<Output>
  ) async throws -> StreamingServerResponse<Output> {
    guard let name = request.metadata[stringValues: Self.key].first(where: { _ in true }) else {
      return try await next(request, context)
    }
    var request = request
    request.metadata.removeAllValues(forKey: Self.key)
    var serviceContext = ServiceContext.current ?? .topLevel
    serviceContext.call.callerName = name
    return try await ServiceContext.$current.withValue(serviceContext) { try await next(request, context) }
  }
}
