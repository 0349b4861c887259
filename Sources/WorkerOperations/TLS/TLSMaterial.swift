internal import FoundationEssentials
internal import NIOCore
internal import NIOSSL

/// The contents of the PEM files of a listener with TLS.
package struct TLSMaterial: Sendable, Equatable {
  /// The certificate of the worker, followed by its intermediate certificates.
  package var certificate: [UInt8]
  /// The private key of the certificate, not encrypted.
  package var key: [UInt8]
  /// Certificates of the authorities whose client certificates are required; `nil` to require none.
  package var clientCA: [UInt8]?

  /// Creates material from the contents of its files.
  package init(certificate: [UInt8], key: [UInt8], clientCA: [UInt8]?) {
    self.certificate = certificate
    self.key = key
    self.clientCA = clientCA
  }
}

/// A PEM file that cannot be used.
package struct TLSMaterialError: Error, Equatable {
  /// The purpose of a file.
  package enum File: Sendable {
    case certificate
    case key
    case clientCA
  }

  /// The file that is wrong.
  package var file: File
  /// The problem, to be read after the name of the file.
  package var problem: String
}

/// The protocol that a listener speaks inside TLS, as ALPN names it.
package enum ApplicationProtocol: String, Sendable {
  /// HTTP/2, which clients must select.
  case http2 = "h2"
  /// HTTP/1.1, which is also spoken with clients that do not use ALPN.
  case http1 = "http/1.1"

  func accepts(_ selected: String?) -> Bool { selected == rawValue || self == .http1 && selected == nil }
}

/// A TLS context with the time at which its certificate expires.
struct TLSContext {
  let context: NIOSSLContext
  /// Seconds since 1970.
  let expiry: Int

  /// Creates a context for TLS 1.3.
  ///
  /// - Parameters:
  ///   - material: The contents of the files.
  ///   - name: The application protocol to offer.
  ///   - now: Seconds since 1970.
  /// - Throws: `TLSMaterialError` naming the file that is wrong.
  init(_ material: TLSMaterial, protocol name: ApplicationProtocol, now: Int) throws(TLSMaterialError) {
    let chain = try Self.certificates(material.certificate, .certificate)
    let key: NIOSSLPrivateKey
    do { key = try NIOSSLPrivateKey(bytes: material.key, format: .pem) } catch {
      throw TLSMaterialError(file: .key, problem: "contains no private key in PEM that is not encrypted")
    }
    expiry = chain[0].notValidAfter
    guard expiry > now else {
      throw TLSMaterialError(file: .certificate, problem: "expired on \(Self.text(expiry))")
    }
    guard chain[0].notValidBefore <= now else {
      let start = Self.text(chain[0].notValidBefore)
      throw TLSMaterialError(file: .certificate, problem: "is not valid before \(start); check the clock")
    }
    var configuration = TLSConfiguration.makeServerConfiguration(
      certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
    configuration.minimumTLSVersion = .tlsv13
    configuration.applicationProtocols = [name.rawValue]
    // A client that does not answer the end of TLS must not delay a drain.
    configuration.shutdownTimeout = .seconds(1)
    if let clientCA = material.clientCA {
      configuration.certificateVerification = .noHostnameVerification
      configuration.trustRoots = .certificates(try Self.certificates(clientCA, .clientCA))
      configuration.sendCANameList = true
    }
    do { context = try NIOSSLContext(configuration: configuration) } catch {
      throw TLSMaterialError(file: .key, problem: "is not the key of the certificate (\(error))")
    }
  }

  private static func certificates(
    _ bytes: [UInt8], _ file: TLSMaterialError.File
  ) throws(TLSMaterialError) -> [NIOSSLCertificate] {
    let certificates = try? NIOSSLCertificate.fromPEMBytes(bytes)
    guard let certificates, !certificates.isEmpty else {
      throw TLSMaterialError(file: file, problem: "contains no certificate in PEM")
    }
    return certificates
  }

  /// Returns a time in UTC.
  private static func text(_ seconds: Int) -> String {
    Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601)
  }
}
