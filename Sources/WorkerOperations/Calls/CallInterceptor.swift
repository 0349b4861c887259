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
    let call = CallLog.Call(
      began: .now, method: context.descriptor.fullyQualifiedMethod, peer: context.remotePeer,
      identity: span?.callerName, span: span)
    let end = CallEnd(context, request.metadata, log.records, waitsForStream: true) { [log] code, error in
      log.note(call, code, error)
    }
    guard log.records.claim(request.metadata) else {
      end.disregard()
      return try await next(request, context)
    }
    do { return try await next(request, context).telling(end) } catch {
      let error = Self.attributed(error)
      end.fail(error)
      throw error
    }
  }

  /// Returns INVALID_ARGUMENT for a unary call without a message or with several, which grpc-swift-2 reports as INTERNAL;
  /// otherwise the error itself.
  private static func attributed(_ error: any Error) -> any Error {
    let messages = ["Empty stream.", "Too many messages."]
    guard let error = error as? RPCError, error.code == .internalError, messages.contains(error.message) else {
      return error
    }
    return RPCError(code: .invalidArgument, message: "the call must have exactly one request message")
  }
}
