internal import FoundationEssentials
internal import GRPCCore
internal import GRPCProtobuf

/// The reason for refusing a call before any handler sees it.
struct RequestRefusal: Error, Equatable {
  /// A limit that the call exceeds.
  struct Limit: Equatable {
    var name: String
    var limit: Int
    var value: Int
  }

  var code: RPCError.Code
  var message: String
  /// The reason of the `ErrorInfo` that is sent with the refusal; `nil` to send none.
  var reason: String?
  var limit: Limit?
  /// The time after which the client may retry.
  var retryDelay: Duration?

  /// Returns the refusal of a call for which there is no room now.
  static func overloaded(_ message: String) -> Self {
    Self(
      code: .resourceExhausted, message: "\(message); try again later", reason: "OVERLOADED", retryDelay: .seconds(1))
  }

  /// The refusal of a call that is open when the worker ends.
  static let draining = Self(
    code: .unavailable, message: "the worker is shutting down; retry on another one", reason: "DRAINING",
    retryDelay: .seconds(1))

  /// Returns the refusal of a message that can never be read.
  ///
  /// - `measure`: how the message's size compares with `limit.value`, as in "at least ".
  /// - `advice`: what the client can do.
  static func tooLarge(
    _ limit: Limit, measure: String = "", advice: String = "; send the image in chunks with BatchProcess"
  ) -> Self {
    Self(
      code: .failedPrecondition,
      message:
        "a message has \(measure)\(limit.value) bytes, above \(limit.name), which allows \(limit.limit) in one\(advice)",
      reason: "LIMIT_EXCEEDED", limit: limit)
  }

  /// A `google.rpc.Status` with the reason, in Base64; `nil` without a reason.
  var wireDetails: String? {
    guard let reason else { return nil }
    var metadata: [String: String] = [:]
    var details: [ErrorDetails] = []
    if let limit {
      metadata = ["limit_name": limit.name, "limit": String(limit.limit), "value": String(limit.value)]
      details.append(
        .preconditionFailure(violations: [.init(type: "LIMIT", subject: limit.name, description: message)]))
    }
    if let retryDelay { details.append(.retryInfo(delay: retryDelay)) }
    details.insert(.errorInfo(reason: reason, domain: "imageworker.v1", metadata: metadata), at: 0)
    let status = GoogleRPCStatus(code: code, message: message, details: details)
    guard let bytes: [UInt8] = try? status.serializedBytes() else { return nil }
    return Data(bytes).base64EncodedString()
  }

  /// The message, percent-encoded as the gRPC specification requires.
  var wireMessage: String {
    message.utf8.reduce(into: "") { text, byte in
      if (0x20...0x7e).contains(byte), byte != UInt8(ascii: "%") {
        text.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
    }
  }
}
