internal import NIOSSL
internal import SwiftASN1
internal import X509

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
