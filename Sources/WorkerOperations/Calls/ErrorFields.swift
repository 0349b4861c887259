internal import GRPCCore
internal import GRPCProtobuf
internal import Logging

/// What the log says of an error that ended a call: a field for each thing that one may search for.
enum ErrorFields {
  /// The fields of an `ErrorInfo`'s metadata that are logged.
  private static let details: Set<String> = ["field", "limit_name", "limit", "value"]

  /// The message as `error`; the `ErrorInfo`'s reason as `reason`; the request's field, and the limit that was exceeded,
  /// where there is one; and as `cause` the defect that the client is not told of.
  static func metadata(of error: any Error) -> Logger.Metadata {
    var metadata: Logger.Metadata = ["error": "\(message(of: error))"]
    // Details that can't be read are as good as none.
    let status = error as? GoogleRPCStatus ?? (error as? RPCError).flatMap { try? $0.unpackGoogleRPCStatus() }
    if let info = status?.details.lazy.compactMap(\.errorInfo).first {
      metadata["reason"] = "\(info.reason)"
      for (key, text) in info.metadata where details.contains(key) {
        // Numbers stay numbers, so that they can be compared.
        if let number = Int(text) { metadata[key] = .stringConvertible(number) } else { metadata[key] = .string(text) }
      }
    }
    // An error that is one of gRPC's itself says no more than was said.
    if let cause = (error as? RPCError)?.cause, !(cause is any RPCErrorConvertible) {
      metadata["cause"] = "\(String(describing: cause))"
    }
    return metadata
  }

  private static func message(of error: any Error) -> String {
    switch error {
    case let error as RPCError: error.message
    case let error as any RPCErrorConvertible: error.rpcErrorMessage
    default: String(describing: error)
    }
  }
}
