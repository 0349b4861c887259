package import GRPCCore
internal import GRPCProtobuf
internal import ServiceContextModule

/// Sends the load of the worker with the end of each call, as `endpoint-load-metrics-bin`.
///
/// gRPC's `weighted_round_robin` and other balancers read it. Calls to operational services have none. Install it after the
/// `ListenerInterceptor`.
package struct LoadReportInterceptor: ServerInterceptor {
  /// The key of the report in the trailing metadata.
  static let key = "endpoint-load-metrics-bin"

  private let meter: LoadMeter

  /// Creates an interceptor that reports what `meter` measures.
  package init(_ meter: LoadMeter) { self.meter = meter }

  package func intercept<Input: Sendable, Output: Sendable>(
    request: StreamingServerRequest<Input>,
    context: ServerContext,
    next: @Sendable (StreamingServerRequest<Input>, ServerContext) async throws -> StreamingServerResponse<Output>
  ) async throws -> StreamingServerResponse<Output> {
    guard !OperationalServices.names.contains(context.descriptor.service.fullyQualifiedService) else {
      return try await next(request, context)
    }
    let call = ServiceContext.current?.call
    do {
      var response = try await next(request, context)
      switch response.accepted {
      case .failure(let error): response.accepted = .failure(failed(error, call))
      case .success(var contents):
        contents.producer = { [produce = contents.producer] writer in
          do {
            var metadata = try await produce(writer)
            metadata.addBinary(end(call, isFailed: false), forKey: Self.key)
            return metadata
          } catch { throw failed(error, call) }
        }
        response.accepted = .success(contents)
      }
      return response
    } catch { throw failed(error, call) }
  }

  /// Counts a call that ends, and returns the report that it ends with.
  private func end(_ call: CallRecord?, isFailed: Bool) -> [UInt8] {
    meter.noteCall(isFailed: isFailed)
    var report = meter.report
    report.callCost = (call?.worked ?? .zero) / .seconds(1)
    return report.bytes
  }

  /// Counts a call that fails, and returns its error with the report.
  private func failed(_ error: any Error, _ call: CallRecord?) -> RPCError {
    var reported = RPCError(reporting: error)
    let isOurs = reported.code.isWorkerFailure && !(error is CancellationError)
    reported.metadata.addBinary(end(call, isFailed: isOurs), forKey: Self.key)
    return reported
  }
}

extension RPCError {
  /// The error that grpc-swift-2 makes of any error of a handler.
  fileprivate init(reporting error: any Error) {
    switch error {
    case let error as RPCError: self = error
    case let error as any RPCErrorConvertible: self.init(error)
    default: self.init(code: .unknown, message: "", cause: error)
    }
  }
}
