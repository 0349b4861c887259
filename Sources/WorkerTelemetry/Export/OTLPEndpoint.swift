/// Where a collector listens, and how it is spoken to.
struct OTLPEndpoint: Hashable, Sendable {
  /// The files of a connection by TLS.
  struct TLS: Hashable, Sendable {
    // PEM files, by path. Without the first the system's certificates are trusted.
    var trustedCertificate: String?
    var clientCertificate: String?
    var clientKey: String?
  }

  static let defaultPort = 4317

  var host: String
  var port: Int
  /// `nil` for plaintext.
  var tls: TLS?
  var usesGzip = false

  /// Reads `http://host:port`, `https://host:port` or `host:port`.
  ///
  /// - `isInsecure`: whether an address without scheme is spoken to in plaintext.
  /// - Throws: `MalformedValue` saying what is wrong.
  init(_ text: String, isInsecure: Bool = false, tls: TLS = TLS()) throws(MalformedValue) {
    var rest = Substring(text)
    var isPlaintext = isInsecure
    if let range = text.firstRange(of: "://") {
      switch text[..<range.lowerBound].lowercased() {
      case "http": isPlaintext = true
      case "https": isPlaintext = false
      case let scheme: throw MalformedValue("has the scheme \"\(scheme)\"; it must be http or https")
      }
      rest = text[range.upperBound...]
    }
    let authority = rest.prefix { !"/?#".contains($0) }
    guard !authority.contains("@") else { throw MalformedValue("must not contain a user name") }
    (host, port) = try Self.split(authority)
    self.tls = isPlaintext ? nil : tls
  }

  private static func split(_ authority: Substring) throws(MalformedValue) -> (String, Int) {
    var host = authority
    var port = defaultPort
    // The colons of an IPv6 address stand in brackets.
    if let colon = authority.lastIndex(of: ":"), !authority[colon...].contains("]") {
      guard let number = UInt16(authority[authority.index(after: colon)...]), number > 0 else {
        throw MalformedValue("has no port number after its colon")
      }
      port = Int(number)
      host = authority[..<colon]
    }
    if host.hasPrefix("["), host.hasSuffix("]") {
      host = host.dropFirst().dropLast()
    } else if host.contains(":") {
      throw MalformedValue("has an IPv6 address without brackets")
    }
    guard !host.isEmpty else { throw MalformedValue("names no host") }
    return (String(host), port)
  }
}

/// What is wrong with a setting's value, as the end of a sentence that begins with the setting's name.
struct MalformedValue: Error, CustomStringConvertible {
  var description: String

  init(_ description: String) {
    self.description = description
  }
}
