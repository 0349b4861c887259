package import CoreMetrics
internal import FoundationEssentials
package import Logging
package import NIOCore
internal import NIOSSL
internal import Synchronization

/// Secures accepted connections with TLS; the certificate of new ones can be replaced while others stay open.
package final class TLSSecurity: Sendable {
  /// Whether clients must present a certificate.
  package let requiresClientCertificates: Bool
  private let applicationProtocol: ApplicationProtocol
  private let handshakeTimeout: Duration
  private let logger: Logger
  private let metrics: any MetricsFactory
  private let current: Mutex<TLSContext>

  /// Creates the security of a listener.
  ///
  /// - Parameters:
  ///   - material: The contents of the files.
  ///   - applicationProtocol: The protocol of the listener.
  ///   - handshakeTimeout: The time after which a connection without a complete handshake is closed.
  ///   - logger: The logger that receives failed handshakes.
  ///   - metrics: The factory of the counter of handshakes.
  /// - Throws: `TLSMaterialError` naming the file that cannot be used.
  package init(
    _ material: TLSMaterial, protocol applicationProtocol: ApplicationProtocol, handshakeTimeout: Duration,
    logger: Logger, metrics: any MetricsFactory
  ) throws(TLSMaterialError) {
    self.applicationProtocol = applicationProtocol
    self.handshakeTimeout = handshakeTimeout
    self.logger = logger
    self.metrics = metrics
    requiresClientCertificates = material.clientCA != nil
    current = Mutex(try TLSContext(material, protocol: applicationProtocol, now: Self.now))
  }

  /// Uses other material for all connections that begin from now on.
  ///
  /// - Throws: `TLSMaterialError` naming the file that cannot be used; the previous context stays in use.
  package func replace(with material: TLSMaterial) throws(TLSMaterialError) {
    let context = try TLSContext(material, protocol: applicationProtocol, now: Self.now)
    current.withLock { $0 = context }
  }

  /// The time at which the certificate expires, in seconds since 1970.
  package var expiry: Int { current.withLock { $0.expiry } }

  /// Adds the handlers of TLS to a new connection, before any other handler; must be called on its event loop.
  ///
  /// - Throws: An error of the pipeline if the connection was closed.
  package func secure(_ channel: any Channel) throws { try secure(channel, caller: nil) }

  /// Adds the handlers of TLS to a new connection.
  ///
  /// - Parameters:
  ///   - channel: The connection, whose pipeline is empty.
  ///   - caller: Receives the names of the client's certificate.
  /// - Throws: An error of the pipeline if the connection was closed.
  func secure(_ channel: any Channel, caller: ConnectionCaller?) throws {
    let context = current.withLock { $0.context }
    let handshake = TLSHandshakeHandler(
      protocol: applicationProtocol, timeout: .nanoseconds(handshakeTimeout.wholeNanoseconds), caller: caller,
      logger: logger, metrics: metrics)
    try channel.pipeline.syncOperations.addHandlers([NIOSSLServerHandler(context: context), handshake])
  }

  private static var now: Int { Int(Date().timeIntervalSince1970) }
}
