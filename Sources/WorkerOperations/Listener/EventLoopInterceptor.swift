package import GRPCCore

/// Keeps a call on the event loop where it begins, which is the event loop of its connection.
///
/// Otherwise, a task that runs on another executor could return on any event loop. Install it first, and serve with
/// `EventLoopExecutor.shared` as the preferred executor.
package struct EventLoopInterceptor: ServerInterceptor {
  package init() {}

  package func intercept<Input: Sendable, Output: Sendable>(
    request: StreamingServerRequest<Input>,
    context: ServerContext,
    next: @Sendable (StreamingServerRequest<Input>, ServerContext) async throws -> StreamingServerResponse<Output>
  ) async throws -> StreamingServerResponse<Output> {
    guard let executor = EventLoopExecutor.current else { return try await next(request, context) }
    var response = try await withTaskExecutorPreference(executor) { try await next(request, context) }
    guard case .success(var contents) = response.accepted else { return response }
    contents.producer = { [producer = contents.producer] writer in
      try await withTaskExecutorPreference(executor) { try await producer(writer) }
    }
    response.accepted = .success(contents)
    return response
  }
}
