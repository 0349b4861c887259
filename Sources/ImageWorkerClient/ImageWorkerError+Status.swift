internal import GRPCCore
internal import GRPCProtobuf
internal import SwiftProtobuf
internal import WorkerProtocol

extension ImageWorkerError {
  /// The error that an item of a batch, or a rendition, ends with.
  init(_ status: Google_Rpc_Status) {
    let bytes: [UInt8]? = try? status.serializedBytes()
    if let bytes, let known = try? GoogleRPCStatus(serializedBytes: bytes) {
      self.init(known)
    } else {
      self.init(status.message, code: .unknown)
    }
  }

  /// The error that a call ended with; `nil` for an error that is none of the service or the connection.
  /// - `worker`: whose connection the call was made on.
  init?(_ error: any Error, of worker: Worker) {
    if let known = error as? ImageWorkerError {
      self = known
      return
    }
    guard let error = error as? RPCError else { return nil }
    let details = error.metadata[binaryValues: "grpc-status-details-bin"].first { _ in true }
    if let details, let status = try? GoogleRPCStatus(serializedBytes: details) {
      self.init(status)
    } else if let problem = error.cause.flatMap(TLSProblem.init) {
      self.init("\(worker.address.text): \(problem.text)", code: .unauthenticated)
      tlsProblem = problem
    } else if error.code == .unavailable,
      let reason = ConnectionFailure.text(error, isEncrypted: worker.isEncrypted)
    {
      self.init("\(worker.address.text): \(reason)", code: error.code)
    } else {
      self.init(error.message.isEmpty ? "\(error.code)" : error.message, code: error.code)
    }
  }

  /// The maximum delay that a worker can ask for, one day; a clock cannot wait for any number of seconds.
  private static let maxRetryDelay = Duration.seconds(86_400)

  private init(_ status: GoogleRPCStatus) {
    var (reason, metadata, field) = ("", [String: String](), "")
    var retryAfter: Duration?
    for detail in status.details {
      if let info = detail.errorInfo, info.domain == Self.domain {
        (reason, metadata) = (info.reason, info.metadata)
      } else if let retry = detail.retryInfo {
        retryAfter = min(max(.zero, retry.delay), Self.maxRetryDelay)
      } else if let violation = detail.badRequest?.violations.first {
        field = violation.field
      }
    }
    if field.isEmpty { field = metadata["field"] ?? "" }
    // The path of a field is the same whether the image went over ProcessImage or BatchProcess.
    if field.hasPrefix("start.") { field.removeFirst("start.".count) }
    self.init(
      status.message, code: status.code, reason: reason, metadata: metadata, retryAfter: retryAfter, field: field)
  }
}
