internal import NIOCore
internal import NIOHPACK

/// What is wrong with a call that is answered before any handler sees it.
struct RequestRefusal: Error, Equatable {
  /// A code of gRPC, as the wire has it.
  enum Code: Int {
    case invalidArgument = 3
    case resourceExhausted = 8
    case unimplemented = 12
    case unavailable = 14
  }

  var code: Code
  var message: String
}

/// The request headers of a call, checked and put into the form that gRPC's package reads without trapping.
struct RequestHeaders {
  static let encodings = "identity,deflate,gzip"

  private(set) var headers: HPACKHeaders
  /// How the messages are compressed; `nil` for not at all.
  private(set) var compression: MessageInflater.Format?

  /// - Parameters:
  ///   - headers: as they came.
  ///   - now: when they came.
  ///   - maxByteCount: maximum size of all of them.
  /// - Throws: how a call with such headers is answered.
  init(_ headers: HPACKHeaders, now: NIODeadline, maxByteCount: Int) throws(RequestRefusal) {
    self.headers = headers
    try checkSize(maxByteCount)
    try readTimeout(now)
    try readEncoding()
  }

  private func checkSize(_ limit: Int) throws(RequestRefusal) {
    let size = headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 }
    guard size > limit else { return }
    throw RequestRefusal(
      code: .resourceExhausted, message: "the call's metadata has \(size) bytes; at most \(limit) are accepted")
  }

  /// Replaces the timeout by one that gRPC's package can read, and notes when it is over.
  private mutating func readTimeout(_ now: NIODeadline) throws(RequestRefusal) {
    headers.remove(name: CallDeadline.key)
    let values = headers[CallTimeout.key]
    guard let value = values.first else { return }
    guard values.count == 1, let timeout = CallTimeout(value) else {
      throw RequestRefusal(
        code: .invalidArgument,
        message: "grpc-timeout is \"\(value.prefix(32))\"; it must be 1 to 8 digits and one of H, M, S, m, u, n")
    }
    headers.remove(name: CallTimeout.key)
    headers.add(name: CallTimeout.key, value: timeout.readableValue)
    headers.add(name: CallDeadline.key, value: CallDeadline(timeout, from: now).value)
  }

  private mutating func readEncoding() throws(RequestRefusal) {
    // Responses are images: to compress them again costs time and saves nothing.
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
