internal import HTTPTypes
internal import HummingbirdCore

/// Decides which requests are served, so that pages of other sites can neither use the worker nor read from it.
struct RequestGate: Sendable {
  /// Whether only processes of this machine can connect.
  let isLocal: Bool

  /// The reason why a request is refused; `nil` if it is served.
  ///
  /// A name that somebody lets resolve to this address (DNS rebinding) stands in `Host`. Other sites stand in `Origin`,
  /// which browsers send with everything that is not a mere reading.
  func refusal(_ request: Request) -> String? {
    guard let authority = request.head.authority, let host = Self.host(of: authority), isKnown(host) else {
      return "the header Host must contain \(isLocal ? "localhost or a loopback address" : "localhost or an address")"
    }
    let origin = request.headers[.origin]
    let needsOrigin = request.method != .get && request.method != .head
    if needsOrigin || origin != nil, origin != "http://\(authority)" {
      return "the header Origin must be http://\(authority)"
    }
    if let site = request.headers[.fetchSite], site != "same-origin", site != "none" {
      // A link on another page may lead here; what it leads to shows nothing before somebody chooses an image.
      guard site != "cross-site" || request.uri.path == "/" else { return "requests from other sites are not served" }
    }
    return nil
  }

  private func isKnown(_ host: Substring) -> Bool {
    if host == "localhost" || host == "[::1]" { return true }
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    let isIPv4 = parts.count == 4 && parts.allSatisfy { UInt8($0) != nil }
    if isIPv4 { return !isLocal || parts[0] == "127" }
    return !isLocal && host.hasPrefix("[") && host.hasSuffix("]")
  }

  /// The host without its port; `nil` if something else follows it.
  private static func host(of authority: String) -> Substring? {
    let bracket = authority.hasPrefix("[") ? authority.firstIndex(of: "]") : nil
    let host = bracket.map { authority[...$0] } ?? authority.prefix { $0 != ":" }
    let port = authority[host.endIndex...]
    return port.isEmpty || port.first == ":" && UInt16(port.dropFirst()) != nil ? host : nil
  }

  /// The headers of every response.
  static let headers: HTTPFields = [
    .contentSecurityPolicy:
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
      + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    .xContentTypeOptions: "nosniff", .referrerPolicy: "no-referrer", .resourcePolicy: "same-origin",
    .openerPolicy: "same-origin", .cacheControl: "no-store",
  ]
}

extension HTTPField.Name {
  private static func known(_ name: String) -> HTTPField.Name {
    guard let name = HTTPField.Name(name) else { preconditionFailure("\(name) is not the name of a header") }
    return name
  }

  fileprivate static let fetchSite = known("Sec-Fetch-Site")
  fileprivate static let referrerPolicy = known("Referrer-Policy")
  fileprivate static let resourcePolicy = known("Cross-Origin-Resource-Policy")
  fileprivate static let openerPolicy = known("Cross-Origin-Opener-Policy")
}
