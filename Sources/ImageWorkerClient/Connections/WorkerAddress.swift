internal import GRPCNIOTransportHTTP2Posix

/// The address of a worker, as users write it: `host:port`, `[::1]:port`, `dns:///host:port` or `unix:/path`.
struct WorkerAddress: Sendable {
  private enum Place: Sendable {
    case ipv4(String, Int)
    case ipv6(String, Int)
    case name(String, Int)
    case socket(String)
  }

  let text: String
  private let place: Place

  /// - Throws: `ClientError` for what is no address.
  init(_ text: String) throws(ClientError) {
    self.text = text
    if text.hasPrefix("unix:") {
      place = .socket(String(text.dropFirst("unix:".count)))
      return
    }
    if let end = text.firstRange(of: "://")?.upperBound, !text.hasPrefix("dns:///") {
      throw ClientError(
        "the address is \"\(text)\"; write it without \(text[..<end]), as in \(Self.place(of: text[end...]))")
    }
    let rest = text.hasPrefix("dns:///") ? text.dropFirst("dns:///".count) : text[...]
    guard let colon = rest.lastIndex(of: ":"), colon > rest.startIndex,
      let port = Int(rest[rest.index(after: colon)...]), (1...65535).contains(port)
    else { throw ClientError("the address is \"\(text)\"; it must be HOST:PORT or unix:PATH") }
    let host = rest[..<colon]
    if host.hasPrefix("["), host.hasSuffix("]") {
      place = .ipv6(String(host.dropFirst().dropLast()), port)
    } else if host.contains(":") {
      throw ClientError("the address is \"\(text)\"; write an IPv6 address in brackets, as in [::1]:50051")
    } else if host.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: ".") })
    {
      place = .ipv4(String(host), port)
    } else {
      place = .name(String(host), port)
    }
  }

  /// The host and port of the part of a URL after its scheme.
  private static func place(of rest: Substring) -> String {
    let place = rest.prefix { $0 != "/" }
    return place.isEmpty ? "worker:50051" : place.contains(":") ? String(place) : "\(place):50051"
  }

  /// Whether what is sent there stays on this machine.
  var isLocal: Bool {
    switch place {
    case .ipv4(let host, _): host.hasPrefix("127.")
    case .ipv6(let host, _): host == "::1"
    case .name(let host, _): host == "localhost"
    case .socket: true
    }
  }

  var target: any ResolvableTarget {
    switch place {
    case .ipv4(let host, let port): .ipv4(address: host, port: port)
    case .ipv6(let host, let port): .ipv6(address: host, port: port)
    case .name(let host, let port): .dns(host: host, port: port)
    case .socket(let path): .unixDomainSocket(path: path)
    }
  }
}

/// A client that cannot be created as requested.
public struct ClientError: Error, Sendable, CustomStringConvertible {
  /// The problem, in one sentence.
  public let description: String

  init(_ description: String) { self.description = description }

  static let closed = ClientError("the client is closed")
}
