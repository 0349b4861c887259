internal import NIOCore

/// An address that the worker listens on.
package enum ListenAddress: Sendable, Hashable, CustomStringConvertible {
  /// A host name or an address, IPv6 without brackets, and a port number; port 0 selects any free port.
  case tcp(host: String, port: Int)
  /// The path of a Unix domain socket and the permissions of its file.
  case unix(path: String, permissions: UInt32)
  /// The descriptor of a socket that the service manager listens on.
  case inherited(CInt)

  /// Whether only processes of this machine can connect.
  ///
  /// A host name is resolved; `true` if that fails, because nothing can listen on it. `true` for an inherited socket,
  /// whose address is known only to the listener.
  package var isLocal: Bool {
    guard case .tcp(let host, let port) = self else { return true }
    // The same function as the one that finds the address to bind.
    guard let address = try? SocketAddress.makeAddressResolvingHost(host, port: port) else { return true }
    return Self.isLocal(address)
  }

  static func isLocal(_ address: SocketAddress) -> Bool {
    guard let text = address.ipAddress else { return true }
    return text.hasPrefix("127.") || text == "::1" || text.hasPrefix("::ffff:127.")
  }

  package var description: String {
    switch self {
    case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    case .unix(let path, _): "unix:\(path)"
    case .inherited(let descriptor): "descriptor \(descriptor)"
    }
  }
}
