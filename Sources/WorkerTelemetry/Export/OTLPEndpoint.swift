/// The address of a collector and the transport settings for it.
struct OTLPEndpoint: Hashable, Sendable {
  /// Certificate and key files for TLS.
  struct TLS: Hashable, Sendable {
    // Path of a PEM file with trusted certificates; `nil` to trust the system's certificates.
    var trustedCertificate: String?
    /// Path of the PEM file with the client's certificate.
    var clientCertificate: String?
    /// Path of the PEM file with the client's private key.
    var clientKey: String?
  }

  static let defaultPort = 4317

  var host: String
  var port: Int
  /// TLS settings; `nil` for plaintext.
  var tls: TLS?
  var usesGzip = false

  /// Parses `http://host:port`, `https://host:port` or `host:port`.
  ///
  /// - Parameters:
  ///   - text: The value of the setting.
  ///   - isInsecure: Whether an address without a scheme uses plaintext.
  ///   - tls: The TLS settings for an address that uses TLS.
  /// - Throws: `MalformedValue` with the reason.
  init(_ text: String, isInsecure: Bool = false, tls: TLS = TLS()) throws(MalformedValue) {
    var rest = Substring(text)
    var isPlaintext = isInsecure
    if let range = text.firstRange(of: "://") {
      switch text[..<range.lowerBound].lowercased() {
      case "http": isPlaintext = true
      case "https": isPlaintext = false
      case let scheme: throw MalformedValue(description: "has the scheme \"\(scheme)\"; it must be http or https")
      }
      rest = text[range.upperBound...]
    }
    let authority = rest.prefix { !"/?#".contains($0) }
    guard !authority.contains("@") else { throw MalformedValue(description: "must not contain a user name") }
    (host, port) = try Self.split(authority)
    self.tls = isPlaintext ? nil : tls
  }

  private static func split(_ authority: Substring) throws(MalformedValue) -> (String, Int) {
    var host = authority
    var port = defaultPort
    // The colons of an IPv6 address are inside brackets.
    if let colon = authority.lastIndex(of: ":"), !authority[colon...].contains("]") {
      guard let number = UInt16(authority[authority.index(after: colon)...]), number > 0 else {
        throw MalformedValue(description: "has no port number after its colon")
      }
      port = Int(number)
      host = authority[..<colon]
    }
    if host.hasPrefix("["), host.hasSuffix("]") {
      host = host.dropFirst().dropLast()
    } else if host.contains(":") {
      throw MalformedValue(description: "has an IPv6 address without brackets")
    }
    guard !host.isEmpty else { throw MalformedValue(description: "names no host") }
    return (String(host), port)
  }
}

/// A description of an invalid setting, phrased to follow the setting's name in a sentence.
struct MalformedValue: Error, CustomStringConvertible {
  var description: String
}
