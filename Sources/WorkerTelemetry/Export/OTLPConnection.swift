internal import GRPCCore
internal import GRPCNIOTransportHTTP2Posix

/// A connection to a collector, opened on first use and reopened when it is lost.
final class OTLPConnection: Sendable {
  let client: GRPCClient<HTTP2ClientTransport.Posix>

  /// Creates a connection; throws if a certificate or key cannot be read.
  init(_ endpoint: OTLPEndpoint) throws {
    let security: HTTP2ClientTransport.Posix.TransportSecurity =
      if let tls = endpoint.tls { .tls(Self.configuration(tls)) } else { .plaintext }
    client = GRPCClient(
      transport: try HTTP2ClientTransport.Posix(
        target: Self.target(endpoint), transportSecurity: security,
        config: .defaults { config in
          config.compression.algorithm = endpoint.usesGzip ? .gzip : .none
          config.compression.enabledAlgorithms = [.gzip]
          // Reconnection continues while the worker runs; this is the maximum delay until a returning collector is
          // found.
          config.backoff.max = .seconds(10)
        }))
  }

  /// Maintains the connection until `close()` is called or the task is cancelled.
  func run() async {
    // It throws when its task is cancelled; nothing is left to do then.
    try? await client.runConnections()
  }

  func close() { client.beginGracefulShutdown() }

  private static func configuration(_ tls: OTLPEndpoint.TLS) -> HTTP2ClientTransport.Posix.TransportSecurity.TLS {
    .defaults { config in
      if let path = tls.trustedCertificate { config.trustRoots = .certificates([.file(path: path, format: .pem)]) }
      if let path = tls.clientCertificate { config.certificateChain = [.file(path: path, format: .pem)] }
      if let path = tls.clientKey { config.privateKey = .file(path: path, format: .pem) }
    }
  }

  private static func target(_ endpoint: OTLPEndpoint) -> any ResolvableTarget {
    if endpoint.host.contains(":") { return .ipv6(address: endpoint.host, port: endpoint.port) }
    let isAddress = endpoint.host.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == 0x2e }
    return isAddress
      ? .ipv4(address: endpoint.host, port: endpoint.port) : .dns(host: endpoint.host, port: endpoint.port)
  }
}
