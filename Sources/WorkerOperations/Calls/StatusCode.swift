package import GRPCCore

extension RPCError.Code {
  /// The code that a client receives for an error that a handler throws.
  init(of error: any Error) {
    switch error {
    case let error as RPCError: self = error.code
    case let error as any RPCErrorConvertible: self = error.rpcErrorCode
    default: self = .unknown
    }
  }

  /// Whether the fault is the server's.
  ///
  /// Source: OpenTelemetry semantic conventions for gRPC, server spans.
  var isServerFault: Bool {
    [.unknown, .deadlineExceeded, .unimplemented, .internalError, .unavailable, .dataLoss].contains(self)
  }

  /// Whether an operator should investigate: no client input or request may end a call with this code.
  ///
  /// Unlike `isServerFault`, which follows OpenTelemetry's definition for spans, this excludes unsupported formats,
  /// deadlines set by clients, and calls refused while the worker shuts down.
  var isDefect: Bool { [.unknown, .internalError, .dataLoss].contains(self) }

  /// Whether the worker failed, or was too busy for the call.
  var isWorkerFailure: Bool { isDefect || self == .unavailable || self == .resourceExhausted }

  /// The code as the gRPC specification spells it, for example `INVALID_ARGUMENT`.
  package var name: String {
    guard self != .internalError else { return "INTERNAL" }
    return description.map { $0.isUppercase ? "_\($0)" : $0.uppercased() }.joined()
  }
}

extension RPCError.Code? {
  /// The code as the gRPC specification spells it; `OK` for none.
  var name: String { self?.name ?? "OK" }
}
