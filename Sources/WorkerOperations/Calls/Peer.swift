/// The other end of a connection, from gRPC's way of writing it: `ipv4:127.0.0.1:50051`, `ipv6:[::1]:50051`,
/// `unix:/run/socket`.
struct Peer: Equatable {
  /// An IP address without brackets, or the path of a socket.
  var address: String
  /// `nil` where there is none.
  var port: Int?

  init(_ peer: String) {
    let parts = peer.split(separator: ":", maxSplits: 1)
    guard parts.count == 2, parts[0] == "ipv4" || parts[0] == "ipv6", let colon = parts[1].lastIndex(of: ":") else {
      address = parts.last.map(String.init) ?? peer
      port = nil
      return
    }
    address = String(parts[1][..<colon].filter { $0 != "[" && $0 != "]" })
    port = Int(parts[1][parts[1].index(after: colon)...])
  }
}
