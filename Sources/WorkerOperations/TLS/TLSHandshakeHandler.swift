internal import CoreMetrics
internal import Logging
internal import NIOCore
internal import NIOSSL
internal import NIOTLS
internal import SwiftASN1
internal import X509

/// Waits for the TLS handshake of a connection and records its outcome; then it removes itself.
///
/// It closes connections whose handshake fails, takes too long, or selects another protocol.
final class TLSHandshakeHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer

  private let applicationProtocol: ApplicationProtocol
  private let timeout: TimeAmount
  private let caller: ConnectionCaller?
  private let logger: Logger
  private let metrics: any MetricsFactory
  private var deadline: Scheduled<Void>?
  private var outcome: TLSHandshakeOutcome?

  init(
    protocol applicationProtocol: ApplicationProtocol, timeout: TimeAmount, caller: ConnectionCaller?, logger: Logger,
    metrics: any MetricsFactory
  ) {
    self.applicationProtocol = applicationProtocol
    self.timeout = timeout
    self.caller = caller
    self.logger = logger
    self.metrics = metrics
  }

  func handlerAdded(context: ChannelHandlerContext) {
    let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    deadline = context.eventLoop.scheduleTask(in: timeout) {
      let (handshake, context) = loopBound.value
      handshake.end(.timeout, context)
    }
  }

  func handlerRemoved(context: ChannelHandlerContext) { deadline?.cancel() }

  func channelInactive(context: ChannelHandlerContext) {
    end(.closed, context)
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    end(TLSHandshakeOutcome(error), context, error: error)
    context.fireErrorCaught(error)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case .handshakeCompleted(let selected)? = event as? TLSUserEvent {
      complete(selected, context)
    }
    context.fireUserInboundEventTriggered(event)
    if outcome == .ok { context.pipeline.syncOperations.removeHandler(self, promise: nil) }
  }

  private func complete(_ selected: String?, _ context: ChannelHandlerContext) {
    guard applicationProtocol.accepts(selected) else { return end(.noProtocol, context) }
    if let caller, let certificate = try? context.pipeline.syncOperations.nioSSL_peerCertificate() {
      caller.certificateNames = PeerCertificate.names(of: certificate)
    }
    end(.ok, context)
  }

  /// Records the first outcome, and closes the connection unless it is `ok`.
  private func end(_ outcome: TLSHandshakeOutcome, _ context: ChannelHandlerContext, error: (any Error)? = nil) {
    guard self.outcome == nil else { return }
    self.outcome = outcome
    deadline?.cancel()
    Counter(label: "imageworker.tls.handshakes", dimensions: [("outcome", outcome.rawValue)], factory: metrics)
      .increment()
    guard outcome != .ok else { return }
    // Load balancers open and close connections to see whether the port answers.
    let level: Logger.Level = outcome == .closed ? .debug : .info
    var metadata: Logger.Metadata = [
      "outcome": "\(outcome.rawValue)",
      "peer": "\(ConnectionGuard.peerName(remote: context.remoteAddress, local: context.localAddress))",
    ]
    if let error { metadata["error"] = "\(error)" }
    logger.log(level: level, "TLS handshake failed", metadata: metadata)
    context.close(promise: nil)
  }
}

/// The outcome of a TLS handshake, as metrics and the log name it.
enum TLSHandshakeOutcome: String, CaseIterable {
  case ok
  /// The client closed the connection before the handshake was complete.
  case closed
  case timeout
  /// The client presented no certificate.
  case noClientCertificate = "no_client_certificate"
  /// The client's certificate was not issued by the client CA, or is not valid now.
  case badClientCertificate = "bad_client_certificate"
  /// The client refused the worker's certificate.
  case refusedByClient = "refused_by_client"
  /// The client offers no TLS 1.3, or no cipher of it.
  case unsupportedVersion = "unsupported_version"
  /// The client does not speak TLS.
  case notTLS = "not_tls"
  /// The client did not select the application protocol.
  case noProtocol = "no_application_protocol"
  case other

  /// Parts of BoringSSL's names of errors.
  private static let reasons: [(part: String, outcome: TLSHandshakeOutcome)] = [
    ("PEER_DID_NOT_RETURN_A_CERTIFICATE", .noClientCertificate), ("CERTIFICATE_VERIFY_FAILED", .badClientCertificate),
    // OpenSSL sends its alert without encryption, which BoringSSL cannot read.
    ("BAD_PACKET_LENGTH", .refusedByClient), ("ALERT_UNKNOWN_CA", .refusedByClient),
    ("ALERT_BAD_CERTIFICATE", .refusedByClient),
    ("ALERT_CERTIFICATE", .refusedByClient), ("ALERT_UNSUPPORTED_CERTIFICATE", .refusedByClient),
    ("UNSUPPORTED_PROTOCOL", .unsupportedVersion), ("NO_SHARED_CIPHER", .unsupportedVersion),
    ("NO_APPLICATION_PROTOCOL", .noProtocol), ("HTTP_REQUEST", .notTLS), ("WRONG_VERSION_NUMBER", .notTLS),
    ("HTTPS_PROXY_REQUEST", .notTLS), ("EOF during handshake", .closed),
  ]

  /// The outcome of a handshake that ended with an error.
  init(_ error: any Error) {
    let text = "\(error)"
    if error is IOError {
      self = .closed
    } else if case .uncleanShutdown? = error as? NIOSSLError {
      self = .closed
    } else {
      self = Self.reasons.first { text.contains($0.part) }?.outcome ?? .other
    }
  }
}

/// Names in a client's certificate.
enum PeerCertificate {
  /// Returns the names of a certificate, as OpenSSL spells them: `URI:`, `DNS:` and `email:` of its alternative names,
  /// then `CN=` of its subject.
  static func names(of certificate: NIOSSLCertificate) -> [String] {
    guard let bytes = try? certificate.toDERBytes(), let certificate = try? Certificate(derEncoded: bytes) else {
      return []
    }
    let alternatives = try? certificate.extensions.subjectAlternativeNames
    let names = (alternatives.map { Array($0) } ?? []).compactMap { name -> String? in
      switch name {
      case .uniformResourceIdentifier(let uri): "URI:\(uri)"
      case .dnsName(let host): "DNS:\(host)"
      case .rfc822Name(let address): "email:\(address)"
      default: nil
      }
    }
    let common = certificate.subject.lazy.flatMap { $0 }.first { $0.type == .RDNAttributeType.commonName }
    let subject = common.flatMap { String($0.value) }.map { ["CN=\($0)"] } ?? []
    return names.sorted { rank($0) < rank($1) } + subject
  }

  /// Position of a kind of name: the one that identifies a workload best comes first.
  private static func rank(_ name: String) -> Int { name.hasPrefix("URI:") ? 0 : name.hasPrefix("DNS:") ? 1 : 2 }
}
