internal import GRPCCore
internal import NIOCore
internal import NIOHPACK

/// The request headers of a call, validated and normalized so that grpc-swift-2 reads them without trapping.
struct RequestHeaders {
  static let encodings = "identity,deflate,gzip"

  private(set) var headers: HPACKHeaders
  /// Compression of the messages; `nil` if they are uncompressed.
  private(set) var compression: MessageInflater.Format?
  /// The time at which the client stops waiting; `nil` if it set no timeout.
  private(set) var deadline: CallDeadline?

  /// Validates the headers of a call.
  ///
  /// - Parameters:
  ///   - headers: The headers as received.
  ///   - now: The time of arrival.
  ///   - maxByteCount: The maximum total size of the headers in bytes.
  /// - Throws: `RequestRefusal` with the answer for the client.
  init(_ headers: HPACKHeaders, now: NIODeadline, maxByteCount: Int) throws(RequestRefusal) {
    self.headers = headers
    try checkSize(maxByteCount)
    self.headers.remove(name: CallRecords.key)
    try readTimeout(now)
    try readEncoding()
  }

  private func checkSize(_ limit: Int) throws(RequestRefusal) {
    let size = headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 }
    guard size > limit else { return }
    throw RequestRefusal(
      code: .resourceExhausted, message: "the call's metadata has \(size) bytes; at most \(limit) are accepted")
  }

  /// Removes the timeout, which grpc-swift-2 would measure with a task and a timer of its own.
  private mutating func readTimeout(_ now: NIODeadline) throws(RequestRefusal) {
    let values = headers[CallTimeout.key]
    guard let value = values.first else { return }
    guard values.count == 1, let timeout = CallTimeout(value) else {
      throw RequestRefusal(
        code: .invalidArgument,
        message: "grpc-timeout is \"\(value.prefix(32))\"; it must be 1 to 8 digits and one of H, M, S, m, u, n")
    }
    headers.remove(name: CallTimeout.key)
    deadline = CallDeadline(timeout, from: now)
  }

  private mutating func readEncoding() throws(RequestRefusal) {
    // Responses contain images; compressing them again costs time and saves nothing.
    headers.remove(name: "grpc-accept-encoding")
    let values = headers["grpc-encoding"]
    guard let value = values.first else { return }
    guard values.count == 1, value != "identity" else {
      if values.count == 1 { return }
      throw RequestRefusal(code: .invalidArgument, message: "grpc-encoding must have one value")
    }
    guard let format = MessageInflater.Format(rawValue: value) else {
      throw RequestRefusal(
        code: .unimplemented,
        message: "grpc-encoding is \"\(value.prefix(32))\"; it must be one of \(Self.encodings)")
    }
    headers.remove(name: "grpc-encoding")
    compression = format
  }
}
