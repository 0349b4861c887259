package import GRPCCore
internal import NIOCore

/// Ends a call whose deadline passed with DEADLINE_EXCEEDED, in its response and for every interceptor before this one.
///
/// grpc-swift-2 cancels such a call in the same way as one whose client disconnected, and its handler then reports
/// CANCELLED. Install it last.
package struct DeadlineInterceptor: ServerInterceptor {
  package init() {}

  package func intercept<Input: Sendable, Output: Sendable>(
    request: StreamingServerRequest<Input>,
    context: ServerContext,
    next: @Sendable (StreamingServerRequest<Input>, ServerContext) async throws -> StreamingServerResponse<Output>
  ) async throws -> StreamingServerResponse<Output> {
    guard let deadline = CallDeadline(request.metadata) else { return try await next(request, context) }
    var request = request
    request.metadata.removeAllValues(forKey: CallDeadline.key)
    var response: StreamingServerResponse<Output>
    do { response = try await next(request, context) } catch { throw deadline.reason(error, context) }
    switch response.accepted {
    case .failure(let error):
      if let reason = deadline.reason(error, context) as? RPCError { response.accepted = .failure(reason) }
    case .success(var contents):
      contents.producer = { [producer = contents.producer] writer in
        do { return try await producer(writer) } catch { throw deadline.reason(error, context) }
      }
      response.accepted = .success(contents)
    }
    return response
  }
}

extension CallDeadline {
  /// Reads the deadline that the listener stored in the metadata.
  ///
  /// Without a listener, the deadline is the call's timeout counted from now. `nil` if the call has no timeout.
  init?(_ metadata: Metadata) {
    if let value = metadata[stringValues: Self.key].first(where: { _ in true }) {
      self.init(value: value)
    } else if let value = metadata[stringValues: CallTimeout.key].first(where: { _ in true }),
      let timeout = CallTimeout(value)
    {
      self.init(timeout, from: .now())
    } else {
      return nil
    }
  }

  /// Returns DEADLINE_EXCEEDED if the call was cancelled because of its deadline, otherwise `error`.
  fileprivate func reason(_ error: any Error, _ context: ServerContext) -> any Error {
    guard context.cancellation.isCancelled, CallEnd.code(error, isCancelled: true) == .cancelled, hasPassed() else {
      return error
    }
    return RPCError(
      code: .deadlineExceeded, message: "the deadline passed before the call was complete; set a longer one")
  }
}
