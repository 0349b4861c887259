package import GRPCCore
internal import ServiceContextModule

/// Reports how each call ended to the `CallLog`, unless the listener does.
///
/// Install it after the tracing interceptor, so that the call's span is current when the end is logged.
package struct CallInterceptor: ServerInterceptor {
  private let log: CallLog

  /// Creates an interceptor that reports to `log`.
  package init(_ log: CallLog) { self.log = log }

  package func intercept<Input: Sendable, Output: Sendable>(
    request: StreamingServerRequest<Input>,
    context: ServerContext,
    next: @Sendable (StreamingServerRequest<Input>, ServerContext) async throws -> StreamingServerResponse<Output>
  ) async throws -> StreamingServerResponse<Output> {
    let span = ServiceContext.current
    let record = span?.call
    let call = CallLog.Call(
      began: .now, method: context.descriptor.fullyQualifiedMethod, peer: context.remotePeer,
      identity: record?.callerName, span: span)
    let end = CallEnd(context, record, waitsForStream: true) { [log] code, error in log.note(call, code, error) }
    guard record?.claim() ?? true else {
      end.disregard()
      return try await next(request, context)
    }
    do {
      var response = try await next(request, context)
      // An error that an interceptor behind this one has caught arrives as a response.
      if case .failure(let error) = response.accepted { response.accepted = .failure(Self.attributed(error)) }
      return response.telling(end)
    } catch {
      let error: any Error =
        switch error {
        case let error as RPCError: Self.attributed(error)
        // A drain that has timed out cancels calls whose messages have not arrived.
        case is CancellationError:
          RPCError(code: .unavailable, message: "the worker is shutting down; retry on another one")
        default: error
        }
      end.fail(error)
      throw error
    }
  }

  /// Returns INVALID_ARGUMENT for a unary call without a message or with several, which grpc-swift-2 reports as INTERNAL;
  /// otherwise the error itself.
  private static func attributed(_ error: RPCError) -> RPCError {
    guard error.code == .internalError, ["Empty stream.", "Too many messages."].contains(error.message) else {
      return error
    }
    return RPCError(code: .invalidArgument, message: "the call must have exactly one request message")
  }
}
