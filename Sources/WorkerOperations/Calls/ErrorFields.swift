internal import GRPCCore
internal import GRPCProtobuf
internal import Logging

/// Log fields for an error that ended a call, one for each value that is useful in searches.
enum ErrorFields {
  /// Keys of an `ErrorInfo`'s metadata that are logged.
  private static let details: Set<String> = ["field", "limit_name", "limit", "value"]

  /// Returns the log fields for an error.
  ///
  /// `error` is the message and `reason` the reason of the `ErrorInfo`. Where present, the request's field and the
  /// limit that was exceeded are included. `cause` is the defect that the client does not see.
  static func metadata(of error: any Error) -> Logger.Metadata {
    var metadata: Logger.Metadata = ["error": "\(message(of: error))"]
    if let refusal = error as? RequestRefusal {
      metadata["reason"] = refusal.reason.map { "\($0)" }
      guard let limit = refusal.limit else { return metadata }
      metadata["limit_name"] = "\(limit.name)"
      metadata["limit"] = .stringConvertible(limit.limit)
      metadata["value"] = .stringConvertible(limit.value)
      return metadata
    }
    // Details that cannot be decoded are ignored.
    let status = error as? GoogleRPCStatus ?? (error as? RPCError).flatMap { try? $0.unpackGoogleRPCStatus() }
    if let info = status?.details.lazy.compactMap(\.errorInfo).first {
      metadata["reason"] = "\(info.reason)"
      for (key, text) in info.metadata where details.contains(key) {
        // Numbers stay numbers, so that log queries can compare them.
        if let number = Int(text) { metadata[key] = .stringConvertible(number) } else { metadata[key] = .string(text) }
      }
    }
    // A cause that is itself a gRPC error adds nothing to the message.
    if let cause = (error as? RPCError)?.cause, !(cause is any RPCErrorConvertible) {
      metadata["cause"] = "\(String(describing: cause))"
    }
    return metadata
  }

  private static func message(of error: any Error) -> String {
    switch error {
    case let error as RPCError: error.message
    case let error as RequestRefusal: error.message
    case let error as any RPCErrorConvertible: error.rpcErrorMessage
    default: String(describing: error)
    }
  }
}
