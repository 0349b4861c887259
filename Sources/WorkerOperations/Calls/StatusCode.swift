internal import GRPCCore

extension RPCError.Code {
  /// The code that a client sees for an error that a handler throws.
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

  /// Whether an operator should look into it: nothing that a client sends or asks for may end a call with this code.
  ///
  /// Unlike `isServerFault`, which OpenTelemetry defines for spans, this leaves out formats that are not supported, deadlines
  /// that clients set, and refusals while the worker shuts down.
  var isDefect: Bool { [.unknown, .internalError, .dataLoss].contains(self) }

  /// The code as the wire specification spells it, as in `INVALID_ARGUMENT`.
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
