package import GRPCCore
internal import NIOCore

/// Lets a call whose deadline passed end as DEADLINE_EXCEEDED, in its answer and for every interceptor before this one.
///
/// gRPC's package cancels such a call like one whose client left, which is what its handler then says. Put it last.
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
  /// The deadline that the listener noted; where there is no listener, that of a call that arrives now.
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

  /// What a call failed for: its deadline, when it was cancelled because of that.
  fileprivate func reason(_ error: any Error, _ context: ServerContext) -> any Error {
    guard context.cancellation.isCancelled, CallEnd.code(error, isCancelled: true) == .cancelled, hasPassed() else {
      return error
    }
    return RPCError(
      code: .deadlineExceeded, message: "the deadline passed before the call was complete; set a longer one")
  }
}
