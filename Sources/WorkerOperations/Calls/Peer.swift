/// The remote end of a connection, parsed from gRPC's notation.
///
/// Examples: `ipv4:127.0.0.1:50051`, `ipv6:[::1]:50051`, `unix:/run/socket`.
struct Peer: Equatable {
  /// IP address without brackets, or path of a Unix socket.
  var address: String
  /// Port number; `nil` for a Unix socket or an address without a port.
  var port: Int?

  init(_ peer: String) {
    let text = peer.utf8
    let rest = text.firstIndex(of: UInt8(ascii: ":")).map { text[text.index(after: $0)...] } ?? text[...]
    guard peer.hasPrefix("ipv4:") || peer.hasPrefix("ipv6:"), let colon = rest.lastIndex(of: UInt8(ascii: ":")) else {
      address = rest.isEmpty ? peer : String(Substring(rest))
      port = nil
      return
    }
    var host = rest[..<colon]
    if host.first == UInt8(ascii: "["), host.last == UInt8(ascii: "]") { host = host.dropFirst().dropLast() }
    address = String(Substring(host))
    port = Int(Substring(rest[rest.index(after: colon)...]))
  }
}
