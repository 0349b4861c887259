internal import GRPCCore
internal import GRPCProtobuf
internal import ImagePipeline
internal import SwiftProtobuf
internal import WorkerProtocol

/// Errors as they go over the wire: `google.rpc.Status` with `ErrorInfo` always, and the details that fit.
enum WireError {
  /// The domain of every `ErrorInfo` of this service.
  static let domain = "imageworker.v1"

  /// How long a client should wait before it tries again when the worker is full or draining.
  static let retryDelay = Duration.seconds(1)

  /// Limits on texts that repeat what a client sent, or list a file's presets.
  ///
  /// gRPC refuses metadata of more than 8 KiB, and the message is in it three times, escaped and in Base64.
  private static let (maxMessageByteCount, maxFieldByteCount) = (1024, 256)

  private static let draining = GoogleRPCStatus(
    code: .unavailable, message: DrainError().description,
    details: [.errorInfo(reason: "DRAINING", domain: domain), .retryInfo(delay: retryDelay)])

  /// - `configurationPath`: where the configuration stands in the request, for the names of its fields.
  private static func status(_ error: PipelineError, configurationPath: String) -> GoogleRPCStatus {
    var error = error
    error.message = shortened(error.message, to: maxMessageByteCount)
    error.field = error.field.map { shortened($0, to: maxFieldByteCount) }
    if let limit = error.limit { error.limit?.name = shortened(limit.name, to: maxFieldByteCount) }
    return GoogleRPCStatus(
      code: code(error.code), message: error.message, details: details(error, configurationPath: configurationPath))
  }

  private static func shortened(_ text: String, to byteCount: Int) -> String {
    text.utf8.count > byteCount ? String(decoding: text.utf8.prefix(byteCount), as: UTF8.self) + "…" : text
  }

  private static func status(_ error: CallerError, configurationPath: String) -> GoogleRPCStatus {
    switch error {
    case .notAllowed(let message, let field):
      let metadata = field.map { ["field": path(of: $0, in: .request, configurationPath: configurationPath)] } ?? [:]
      return GoogleRPCStatus(
        code: .permissionDenied, message: message,
        details: [.errorInfo(reason: "PERMISSION_DENIED", domain: domain, metadata: metadata)])
    case .quotaExceeded(let message, let caller, let delay):
      return GoogleRPCStatus(
        code: .resourceExhausted, message: message,
        details: [
          .errorInfo(reason: "QUOTA_EXCEEDED", domain: domain), .retryInfo(delay: delay ?? retryDelay),
          .quotaFailure(violations: [.init(subject: "identity:\(caller)", description: message)]),
        ])
    }
  }

  /// The status of one of the renditions of a request, which its message and its details name.
  private static func status(_ error: RenditionError, configurationPath: String) -> GoogleRPCStatus {
    let path = "\(requestPath(configurationPath))renditions[\(error.index)]"
    var status = status(any: error.error, configurationPath: "\(path).configuration")
    status.message = "\(path): \(status.message)"
    return status
  }

  /// The status of one of the images of a call, which its message and its details name.
  private static func status(_ error: IndexedImageError, configurationPath: String) -> GoogleRPCStatus {
    var status = status(any: error.error, configurationPath: configurationPath)
    status.message = "image \(error.index): \(status.message)"
    status.details = status.details.map { detail in
      guard var info = detail.errorInfo else { return detail }
      info.metadata["image_index"] = String(error.index)
      return .errorInfo(info)
    }
    return status
  }

  /// Any error as a text: its reason, and its message.
  static func text(any error: any Error) -> String {
    let status = status(any: error, configurationPath: "configuration")
    let reason = status.details.lazy.compactMap(\.errorInfo?.reason).first
    return reason.map { "\($0): \(status.message)" } ?? status.message
  }

  /// Any error of a call as one that keeps its code and never becomes UNKNOWN.
  ///
  /// The delay of its `RetryInfo` is repeated as gRPC's own retries read it (gRFC A6).
  ///
  /// A defect is the cause of what it becomes, which the log is told of and the client is not.
  static func status(any error: any Error) -> any Error {
    if let error = error as? RPCError { return error }
    let status = status(any: error, configurationPath: "configuration")
    let delay = status.details.lazy.compactMap(\.retryInfo?.delay).first
    guard status.code == .internalError || delay != nil else { return status }
    var metadata = status.rpcErrorMetadata
    if let delay {
      metadata.addString(String(Int64(delay / .milliseconds(1))), forKey: "grpc-retry-pushback-ms")
    }
    let cause = status.code == .internalError ? error : nil
    return RPCError(code: status.code, message: status.message, metadata: metadata, cause: cause)
  }

  /// Any error of a rendition as it stands in the rendition's result.
  static func renditionStatus(any error: any Error) -> GoogleRPCStatus {
    status(any: error, configurationPath: "configuration")
  }

  /// Any error of a batch item as it stands in the item's result.
  static func itemStatus(any error: any Error) -> GoogleRPCStatus {
    status(any: error, configurationPath: "start.configuration")
  }

  private static func status(any error: any Error, configurationPath: String) -> GoogleRPCStatus {
    switch error {
    case let error as PipelineError: status(error, configurationPath: configurationPath)
    case let error as RenditionError: status(error, configurationPath: configurationPath)
    case let error as IndexedImageError: status(error, configurationPath: configurationPath)
    case let error as CallerError: status(error, configurationPath: configurationPath)
    case is DrainError: draining
    case let error as GoogleRPCStatus: error
    case let error as RPCError:
      GoogleRPCStatus(
        code: error.code, message: error.message, details: [.errorInfo(reason: "RPC_ERROR", domain: domain)])
    case is CancellationError: status(PipelineError.cancelled, configurationPath: configurationPath)
    default:
      status(
        PipelineError(
          .internalDefect, "the call failed because of a defect in the worker; its log contains the cause"),
        configurationPath: configurationPath)
    }
  }

  /// The way to the message in which the configuration stands.
  private static func requestPath(_ configurationPath: String) -> Substring {
    configurationPath.dropLast("configuration".count)
  }

  private static func code(_ code: PipelineError.Code) -> RPCError.Code {
    switch code {
    case .invalidField, .unknownPreset, .emptyImage, .corruptImage, .truncatedImage: .invalidArgument
    case .unservedField, .unknownFormat, .unsupportedImage: .unimplemented
    case .limitExceeded: .failedPrecondition
    case .overloaded, .codecStopped: .resourceExhausted
    case .uploadStalled: .deadlineExceeded
    case .cancelled: .cancelled
    case .codecCrashed, .internalDefect: .internalError
    }
  }

  private static func details(_ error: PipelineError, configurationPath: String) -> [ErrorDetails] {
    var metadata: [String: String] = [:]
    let field = error.field.map { path(of: $0, in: error.fieldOwner, configurationPath: configurationPath) }
    metadata["field"] = field
    if let limit = error.limit {
      metadata["limit_name"] = limit.name
      metadata["limit"] = String(limit.limit)
      metadata["value"] = String(limit.value)
    }
    metadata["needed_bytes"] = error.neededByteCount.map { String($0) }
    var details: [ErrorDetails] = [
      .errorInfo(reason: error.code.rawValue, domain: domain, metadata: metadata)
    ]
    switch error.code {
    case .overloaded:
      details.append(.retryInfo(delay: error.retryDelay ?? retryDelay))
      details.append(.quotaFailure(violations: [.init(subject: "worker", description: error.message)]))
    case .limitExceeded:
      details.append(
        .preconditionFailure(violations: [
          .init(type: "LIMIT", subject: error.limit?.name ?? "image", description: error.message)
        ]))
    default:
      if let field {
        details.append(.badRequest(violations: [.init(field: field, description: error.message)]))
      }
    }
    return details
  }

  /// Returns the path of a field in the message that the client sent.
  private static func path(of field: String, in owner: PipelineError.FieldOwner, configurationPath: String) -> String {
    switch owner {
    case .configuration: "\(configurationPath).\(field)"
    case .request: requestPath(configurationPath) + field
    case .message: field
    }
  }
}

extension Google_Rpc_Status {
  /// The status as it stands in a batch item's result.
  init(_ status: GoogleRPCStatus) {
    do {
      let bytes: [UInt8] = try status.serializedBytes()
      self = try Google_Rpc_Status(serializedBytes: bytes)
    } catch {
      // Details that can't be packed must not cost the item its error.
      self.init()
      code = Int32(status.code.rawValue)
      message = status.message
    }
  }
}
