internal import GRPCNIOTransportHTTP2Posix

/// The certificates of a connection.
public struct TLS: Sendable, Hashable {
  /// A certificate or key in PEM format.
  public enum PEM: Sendable, Hashable {
    case file(path: String)
    case bytes([UInt8])
  }

  /// The authorities that the worker's certificate is checked against; `nil` for those of the system.
  public var rootCertificates: PEM?
  /// The certificate that identifies this client, with its intermediate certificates.
  public var certificate: PEM?
  /// The key of ``certificate``.
  public var privateKey: PEM?
  /// The host name that the worker's certificate must have, instead of that of the address.
  public var serverName: String?

  /// Creates the certificates of a connection.
  public init(
    rootCertificates: PEM? = nil, certificate: PEM? = nil, privateKey: PEM? = nil, serverName: String? = nil
  ) {
    self.rootCertificates = rootCertificates
    self.certificate = certificate
    self.privateKey = privateKey
    self.serverName = serverName
  }

  var security: HTTP2ClientTransport.Posix.TransportSecurity {
    .tls { config in
      if let roots = rootCertificates?.source { config.trustRoots = .certificates([roots]) }
      if let certificate = certificate?.source { config.certificateChain = [certificate] }
      config.privateKey = privateKey?.keySource
    }
  }
}

extension TLS.PEM {
  fileprivate var source: TLSConfig.CertificateSource {
    switch self {
    case .file(let path): .file(path: path, format: .pem)
    case .bytes(let bytes): .bytes(bytes, format: .pem)
    }
  }

  fileprivate var keySource: TLSConfig.PrivateKeySource {
    switch self {
    case .file(let path): .file(path: path, format: .pem)
    case .bytes(let bytes): .bytes(bytes, format: .pem)
    }
  }
}
