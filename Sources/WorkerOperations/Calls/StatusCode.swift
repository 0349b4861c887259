internal import GRPCCore

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

  /// The code as the gRPC specification spells it, for example `INVALID_ARGUMENT`.
  var name: String {
    switch self {
    case .cancelled: "CANCELLED"
    case .unknown: "UNKNOWN"
    case .invalidArgument: "INVALID_ARGUMENT"
    case .deadlineExceeded: "DEADLINE_EXCEEDED"
    case .notFound: "NOT_FOUND"
    case .alreadyExists: "ALREADY_EXISTS"
    case .permissionDenied: "PERMISSION_DENIED"
    case .resourceExhausted: "RESOURCE_EXHAUSTED"
    case .failedPrecondition: "FAILED_PRECONDITION"
    case .aborted: "ABORTED"
    case .outOfRange: "OUT_OF_RANGE"
    case .unimplemented: "UNIMPLEMENTED"
    case .internalError: "INTERNAL"
    case .unavailable: "UNAVAILABLE"
    case .dataLoss: "DATA_LOSS"
    case .unauthenticated: "UNAUTHENTICATED"
    default: "\(rawValue)"
    }
  }
}

extension RPCError.Code? {
  /// The code as the gRPC specification spells it; `OK` for none.
  var name: String { self?.name ?? "OK" }
}
