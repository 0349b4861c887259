package import CoreMetrics
package import GRPCCore
package import Logging
internal import ServiceContextModule

/// Measures the duration of each call and logs how it ended.
///
/// Install it after the tracing interceptor, so that the call's span is current when the end is logged. Calls to
/// operational services are measured too, but logged at `debug`. Other calls are logged at `info`, and at `error` only
/// if the worker has a defect.
package struct CallInterceptor: ServerInterceptor {
  private let metrics: any MetricsFactory
  private let logger: Logger
  private let quiet: Set<String>

  /// Creates an interceptor.
  ///
  /// - Parameters:
  ///   - metrics: The factory of the timer that records call durations.
  ///   - logger: The logger that receives one message per call.
  ///   - quiet: Full names of the services whose calls are logged at `debug` only.
  package init(metrics: any MetricsFactory, logger: Logger, quiet: Set<String> = OperationalServices.names) {
    self.metrics = metrics
    self.logger = logger
    self.quiet = quiet
  }

  package func intercept<Input: Sendable, Output: Sendable>(
    request: StreamingServerRequest<Input>,
    context: ServerContext,
    next: @Sendable (StreamingServerRequest<Input>, ServerContext) async throws -> StreamingServerResponse<Output>
  ) async throws -> StreamingServerResponse<Output> {
    let call = Call(began: .now, method: context.descriptor, peer: context.remotePeer, span: .current)
    let end = CallEnd(context, request.metadata) { code, error in note(call, code, error) }
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

  private struct Call: Sendable {
    var began: ContinuousClock.Instant
    var method: MethodDescriptor
    var peer: String
    var span: ServiceContext?
  }

  private func note(_ call: Call, _ code: RPCError.Code?, _ error: (any Error)?) {
    let duration = call.began.duration(to: .now)
    let name = code?.name ?? "OK"
    let method = call.method.fullyQualifiedMethod
    let timer = Timer(
      label: "rpc.server.call.duration", dimensions: [("rpc.method", method), ("rpc.response.status_code", name)],
      factory: metrics)
    timer.recordNanoseconds(duration.wholeNanoseconds)
    let isQuiet = quiet.contains(call.method.service.fullyQualifiedService)
    let level: Logger.Level = isQuiet ? .debug : code?.isDefect == true ? .error : .info
    // No task context is current when the end is reported because the response was released.
    ServiceContext.$current.withValue(call.span) {
      var metadata: Logger.Metadata = [
        "method": "\(method)", "code": "\(name)", "peer": "\(call.peer)",
        "duration_ms": .stringConvertible(duration.milliseconds),
      ]
      if let caller = call.span?.callerName { metadata["identity"] = "\(caller)" }
      if let error { metadata.merge(ErrorFields.metadata(of: error)) { own, _ in own } }
      logger.log(level: level, "call", metadata: metadata)
    }
  }
}

extension Duration {
  /// Whole nanoseconds; `Int64` overflows after 292 years.
  var wholeNanoseconds: Int64 { components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000 }

  /// Milliseconds, with microsecond resolution.
  var milliseconds: Double { Double(wholeNanoseconds / 1000) / 1000 }
}
