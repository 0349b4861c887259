package import CoreMetrics
package import Logging
package import NIOCore
internal import NIOSSL

/// Secures accepted connections with TLS.
package struct TLSSecurity: Sendable {
  private let contexts: TLSContexts
  private let handshakeTimeout: Duration
  private let logger: Logger
  private let metrics: any MetricsFactory

  /// Creates the security of a listener.
  ///
  /// - Parameters:
  ///   - contexts: The source of the context of each connection.
  ///   - handshakeTimeout: The time after which a connection without a complete handshake is closed.
  ///   - logger: The logger that receives failed handshakes.
  ///   - metrics: The factory of the counter of handshakes.
  package init(
    contexts: TLSContexts, handshakeTimeout: Duration, logger: Logger, metrics: any MetricsFactory
  ) {
    self.contexts = contexts
    self.handshakeTimeout = handshakeTimeout
    self.logger = logger
    self.metrics = metrics
  }

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
    let handshake = TLSHandshakeHandler(
      protocol: contexts.applicationProtocol, timeout: .nanoseconds(handshakeTimeout.wholeNanoseconds), caller: caller,
      logger: logger,
      metrics: metrics)
    try channel.pipeline.syncOperations.addHandlers([NIOSSLServerHandler(context: contexts.context), handshake])
  }
}
