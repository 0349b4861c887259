package import CoreMetrics
internal import GRPCCore
package import Logging
internal import ServiceContextModule

/// Reports the end of each call once: its duration as a metric, and a line in the log.
///
/// `CallInterceptor` reports the calls that it sees, and the listener those that never reach an interceptor. Calls to
/// operational services are measured too, but logged at `debug`. Other calls are logged at `info`, and at `error` only
/// if the worker has a defect.
package struct CallLog: Sendable {
  /// A call that has ended.
  struct Call: Sendable {
    var began: ContinuousClock.Instant
    /// The fully qualified name, as in `package.Service/Method`.
    var method: String
    /// Whether the worker has the method for certain.
    var isDispatched = true
    /// The client's address in gRPC's notation.
    var peer: String
    /// The name of the caller; `nil` if it was not identified.
    var identity: String?
    /// The context of the call's span.
    var span: ServiceContext?
  }

  /// The calls that are open in the listener.
  let records = CallRecords()
  private let metrics: any MetricsFactory
  private let logger: Logger
  private let quiet: Set<String>
  private let methods: Set<String>

  /// Creates a log.
  ///
  /// - Parameters:
  ///   - metrics: The factory of the timer that records call durations.
  ///   - logger: The logger that receives one message per call.
  ///   - quiet: Full names of the services whose calls are logged at `debug` only.
  ///   - methods: Fully qualified names of the worker's methods. Calls of others are measured as `_OTHER`, because
  ///     their clients choose the names.
  package init(
    metrics: any MetricsFactory, logger: Logger, quiet: Set<String> = OperationalServices.names,
    methods: Set<String> = []
  ) {
    self.metrics = metrics
    self.logger = logger
    self.quiet = quiet
    self.methods = methods
  }

  /// Reports a call.
  ///
  /// - `code`: the status code; `nil` for OK.
  /// - `error`: why the call failed, if that is known.
  func note(_ call: Call, _ code: RPCError.Code?, _ error: (any Error)?) {
    let duration = call.began.duration(to: .now)
    // No task context is current when the end is reported because the response was released.
    ServiceContext.$current.withValue(call.span) {
      measure(call, code, duration)
      log(call, code, error, duration)
    }
  }

  /// Source: OpenTelemetry semantic conventions for RPC metrics and gRPC, in the version that the spans follow.
  private func measure(_ call: Call, _ code: RPCError.Code?, _ duration: Duration) {
    // A name as long as the client likes is not hashed.
    let isKnown = call.isDispatched || call.method.utf8.count <= 256 && methods.contains(call.method)
    var dimensions = [
      ("rpc.system.name", "grpc"), ("rpc.method", isKnown ? call.method : "_OTHER"),
      ("rpc.response.status_code", code.name),
    ]
    if let code, code.isServerFault { dimensions.append(("error.type", code.name)) }
    Timer(label: "rpc.server.call.duration", dimensions: dimensions, factory: metrics)
      .recordNanoseconds(duration.wholeNanoseconds)
  }

  private func log(_ call: Call, _ code: RPCError.Code?, _ error: (any Error)?, _ duration: Duration) {
    let isQuiet = quiet.contains { call.method.hasPrefix("\($0)/") }
    let level: Logger.Level = isQuiet ? .debug : code?.isDefect == true ? .error : .info
    var metadata: Logger.Metadata = [
      "method": "\(String(decoding: call.method.utf8.prefix(128), as: UTF8.self))", "code": "\(code.name)",
      "peer": "\(call.peer)",
      "duration_ms": .stringConvertible(duration.milliseconds),
    ]
    if let identity = call.identity { metadata["identity"] = "\(identity)" }
    if let error { metadata.merge(ErrorFields.metadata(of: error)) { own, _ in own } }
    logger.log(level: level, "call", metadata: metadata)
  }
}

extension Duration {
  /// Whole nanoseconds, at most 292 years.
  var wholeNanoseconds: Int64 { Int64(clamping: attoseconds / 1_000_000_000) }

  /// Milliseconds, with microsecond resolution.
  var milliseconds: Double { Double(wholeNanoseconds / 1000) / 1000 }
}
