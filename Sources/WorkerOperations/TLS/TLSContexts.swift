internal import FoundationEssentials
internal import NIOSSL
internal import Synchronization

/// The TLS context of new connections, which can be replaced while others stay open.
package final class TLSContexts: Sendable {
  /// Whether clients must present a certificate.
  package let requiresClientCertificates: Bool
  let applicationProtocol: ApplicationProtocol
  private let current: Mutex<TLSContext>

  /// Creates the first context.
  ///
  /// - Parameters:
  ///   - material: The contents of the files.
  ///   - applicationProtocol: The protocol of the listener.
  /// - Throws: `TLSMaterialError` naming the file that cannot be used.
  package init(
    _ material: TLSMaterial, protocol applicationProtocol: ApplicationProtocol
  ) throws(TLSMaterialError) {
    self.applicationProtocol = applicationProtocol
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

  var context: NIOSSLContext { current.withLock { $0.context } }

  private static var now: Int { Int(Date().timeIntervalSince1970) }
}
