package import GRPCCore
internal import ServiceContextModule

/// Lets the handlers of some services keep objects until the streams of their calls are closed.
///
/// A handler ends when its response is written, which its client may read much later: a charge of the response's memory must
/// last longer. Install it after the interceptors that change the context.
package struct LifetimeInterceptor: ServerInterceptor {
  private let calls: CallLog
  private let services: Set<String>

  /// Creates an interceptor.
  ///
  /// - Parameters:
  ///   - calls: The log of the listener's calls.
  ///   - services: Full names of the services.
  package init(_ calls: CallLog, services: Set<String>) {
    self.calls = calls
    self.services = services
  }

  package func intercept<Input: Sendable, Output: Sendable>(
    request: StreamingServerRequest<Input>,
    context: ServerContext,
    next: @Sendable (StreamingServerRequest<Input>, ServerContext) async throws -> StreamingServerResponse<Output>
  ) async throws -> StreamingServerResponse<Output> {
    guard services.contains(context.descriptor.service.fullyQualifiedService),
      let record = calls.records.record(request.metadata)
    else { return try await next(request, context) }
    var current = ServiceContext.current ?? .topLevel
    current.call.record = record
    return try await ServiceContext.$current.withValue(current) { try await next(request, context) }
  }
}
