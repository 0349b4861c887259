public import GRPCCore

/// An error of the service, or of the connection to it.
///
/// Decide by ``reason``, or by `kind`; messages may change.
public struct ImageWorkerError: Error, Sendable, Hashable, CustomStringConvertible {
  /// A kind of error.
  public struct Kind: Sendable, Hashable, CustomStringConvertible {
    /// The reason or code, and the message.
    public let description: String

    /// A field or the preset of the request is not valid, or not supported by this worker.
    public static let invalidRequest = Kind(description: "invalid request")
    /// The image is empty, truncated, corrupt, or of a format that is not supported.
    public static let image = Kind(description: "image")
    /// The image, its result, or `max_bytes`, exceeds a limit: see ``ImageWorkerError/limitName``.
    public static let limitExceeded = Kind(description: "limit exceeded")
    /// The worker has no room for the image now.
    public static let overloaded = Kind(description: "overloaded")
    /// No worker could be reached, or the connection was lost.
    public static let unavailable = Kind(description: "unavailable")
    /// The timeout of the call or item passed.
    public static let deadline = Kind(description: "deadline")
    /// The worker does not accept the token or certificate, or its own certificate is not trusted.
    public static let authentication = Kind(description: "authentication")
    /// Any other error.
    public static let other = Kind(description: "other")
  }

  /// The kind of the error.
  public var kind: Kind
  /// The message, for people.
  public var message: String
  /// The status code.
  public var code: RPCError.Code
  /// The reason, such as `CORRUPT_IMAGE`; empty if the error did not come from the service itself.
  public var reason: String
  /// The metadata of the error's `ErrorInfo`.
  public var metadata: [String: String]
  /// The time to wait before a retry, if the worker sent it.
  public var retryAfter: Duration?
  /// The path of the field that is the cause, such as `configuration.max_width`; empty if there is none.
  public var field: String
  /// The reason why the client and the worker cannot agree on a TLS connection, if that is the error.
  package var tlsProblem: TLSProblem?

  init(
    _ message: String, code: RPCError.Code, reason: String = "", metadata: [String: String] = [:],
    retryAfter: Duration? = nil, field: String = ""
  ) {
    self.message = message
    self.code = code
    self.reason = reason
    self.metadata = metadata
    self.retryAfter = retryAfter
    self.field = field
    kind = Self.kinds[reason] ?? Self.kind(of: code)
  }

  /// The limit that was exceeded; empty if none was.
  public var limitName: String { metadata["limit_name"] ?? "" }
  /// The limit that was exceeded.
  public var limit: Int? { metadata["limit"].flatMap { Int($0) } }
  /// The value that exceeds ``limit``.
  public var value: Int? { metadata["value"].flatMap { Int($0) } }

  /// Whether the same request can succeed later, or on another worker.
  public var isRetryable: Bool {
    // A quota of an hour is nothing to wait for.
    if reason == Self.quotaExceeded { return retryAfter.map { $0 <= Self.maxBatchDelay } ?? false }
    if !reason.isEmpty { return Self.retryableReasons.contains(reason) || code == .unavailable }
    return Self.lostCodes.contains(code) || retryAfter != nil
  }

  /// The reason or code, and the message.
  public var description: String { "\(reason.isEmpty ? "\(code)" : reason): \(message)" }

  /// Whether a worker refused the item before it began; such an item is not suspected to have broken the stream.
  var isRefusal: Bool { isOverload || reason == Self.draining }
  /// Whether the worker takes no items any more.
  var isEnd: Bool { code == .unavailable || reason == Self.draining }
  /// The delay that the worker asks for, as far as a batch obeys.
  var retryDelay: Duration { min(retryAfter ?? .zero, Self.maxBatchDelay) }
  /// Whether the worker, or what it grants this client, is exhausted for now.
  var isOverload: Bool { reason == Self.overloaded || reason == Self.quotaExceeded }

  /// The domain of the service's reasons.
  static let domain = "imageworker.v1"
  private static let overloaded = "OVERLOADED"
  private static let draining = "DRAINING"
  private static let quotaExceeded = "QUOTA_EXCEEDED"
  /// The longest delay that a batch waits because a worker asks for it.
  ///
  /// A quota of an hour is nothing to wait for.
  private static let maxBatchDelay = Duration.seconds(60)
  private static let retryableReasons: Set<String> = [overloaded, draining, "UPLOAD_STALLED"]
  /// Without a reason these mean that the connection or the worker was lost, not that the request is at fault.
  private static let lostCodes: Set<RPCError.Code> = [.unavailable, .internalError, .unknown, .cancelled, .aborted]
  private static let kinds: [String: Kind] = [
    "INVALID_FIELD": .invalidRequest, "UNSERVED_FIELD": .invalidRequest, "UNKNOWN_PRESET": .invalidRequest,
    "EMPTY_IMAGE": .image, "UNKNOWN_FORMAT": .image, "UNSUPPORTED_IMAGE": .image, "CORRUPT_IMAGE": .image,
    "TRUNCATED_IMAGE": .image, "LIMIT_EXCEEDED": .limitExceeded, overloaded: .overloaded, draining: .unavailable,
    "UPLOAD_STALLED": .deadline,
  ]

  private static func kind(of code: RPCError.Code) -> Kind {
    switch code {
    case .invalidArgument: .invalidRequest
    case .failedPrecondition: .limitExceeded
    case .resourceExhausted: .overloaded
    case .unavailable: .unavailable
    case .deadlineExceeded: .deadline
    case .unauthenticated, .permissionDenied: .authentication
    default: .other
    }
  }

  /// A stream or a connection ended without the result.
  static func lost(_ message: String) -> ImageWorkerError { ImageWorkerError(message, code: .unavailable) }

  /// The name of the client's limit of results.
  package static let maxResultBytes = "maxResultBytes"

  /// A result exceeds the client's limit.
  static func tooLarge(byteCount: Int, limit: Int) -> ImageWorkerError {
    ImageWorkerError(
      "the result has more than \(limit) bytes, the maximum of this client", code: .failedPrecondition,
      metadata: ["limit_name": maxResultBytes, "limit": "\(limit)", "value": "\(byteCount)"])
  }

  /// A result has another size than its report states.
  static func incomplete(byteCount: Int, of expected: UInt64) -> ImageWorkerError {
    ImageWorkerError(
      "\(byteCount) bytes of the result have arrived, of which its report counts \(expected)", code: .dataLoss)
  }

  /// A timeout passed in the client.
  static func timedOut(after timeout: Duration) -> ImageWorkerError {
    ImageWorkerError("no result after \(timeout)", code: .deadlineExceeded)
  }
}
