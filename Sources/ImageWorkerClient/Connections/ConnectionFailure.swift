internal import GRPCCore
internal import NIOCore
internal import NIOSSL
internal import SystemPackage

/// A disagreement of the client and a worker about TLS, which further attempts do not change.
package enum TLSProblem: String, Sendable, Hashable, CaseIterable {
  /// The worker's certificate has expired, or no trusted authority has issued it.
  case untrustedCertificate
  /// The worker's certificate is for another host name.
  case wrongName
  /// The worker requires a client certificate.
  case clientCertificateRequired
  /// The worker does not accept the client certificate.
  case clientCertificateRefused
  /// The worker does not use TLS.
  case plaintextWorker

  /// The problem as a sentence about the worker.
  var text: String {
    switch self {
    case .untrustedCertificate:
      "its certificate is not trusted: it has expired, or no trusted authority has issued it"
    case .wrongName: "its certificate is for another host name"
    case .clientCertificateRequired: "it requires a client certificate"
    case .clientCertificateRefused: "it does not accept the client certificate"
    case .plaintextWorker: "it does not use TLS"
    }
  }

  /// Finds the problem that ended a TLS handshake; `nil` for an error of another kind.
  init?(_ error: any Error) {
    if let error = error as? NIOSSLExtraError, error == .failedToValidateHostname {
      self = .wrongName
      return
    }
    // BoringSSL has names for errors, which NIOSSL only has in the text.
    let text = "\(error)"
    guard error is NIOSSLError || error is BoringSSLError,
      let known = Self.names.first(where: { text.contains($0.name) })
    else { return nil }
    self = known.problem
  }

  private static let names: [(name: String, problem: TLSProblem)] = [
    ("CERTIFICATE_VERIFY_FAILED", .untrustedCertificate), ("ALERT_CERTIFICATE_REQUIRED", .clientCertificateRequired),
    ("ALERT_UNKNOWN_CA", .clientCertificateRefused), ("ALERT_BAD_CERTIFICATE", .clientCertificateRefused),
    ("ALERT_CERTIFICATE_", .clientCertificateRefused), ("ALERT_UNSUPPORTED_CERTIFICATE", .clientCertificateRefused),
    ("ALERT_ACCESS_DENIED", .clientCertificateRefused), ("WRONG_VERSION_NUMBER", .plaintextWorker),
    ("HTTP_REQUEST", .plaintextWorker),
  ]
}

/// The reason why a connection could not be established, in words for people.
enum ConnectionFailure {
  /// - `error`: the error of a call that has no status of the service.
  /// - `isEncrypted`: whether the client uses TLS.
  /// - Returns: the reason; `nil` if it is not known.
  static func text(_ error: RPCError, isEncrypted: Bool) -> String? {
    var cause: (any Error)? = error.cause
    while let inner = (cause as? RPCError)?.cause { cause = inner }
    if let cause = cause as? IOError { return Errno(rawValue: cause.errnoCode).description.lowercasingFirst }
    if error.message.contains("resolve server name") { return cause.map { "\($0)".lowercasingFirst } }
    guard error.message.contains("before completing the HTTP/2 connection preface") else { return nil }
    return isEncrypted
      ? "it closed the connection during the TLS handshake"
      : "it closed the connection at once; a worker with TLS does so if the client has none"
  }
}

extension String {
  /// The text as a part of a sentence.
  fileprivate var lowercasingFirst: String { prefix(1).lowercased() + dropFirst() }
}
