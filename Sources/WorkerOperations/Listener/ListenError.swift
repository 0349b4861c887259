internal import LibC
internal import NIOCore

/// An address that cannot be listened on, with the options that choose it.
package struct ListenError: Error, CustomStringConvertible {
  /// The options that choose the host and the port of a listener.
  package struct Options: Sendable {
    /// The option of the host, as users spell it.
    package var host: String
    /// The option of the port.
    package var port: String

    package init(host: String = "--host", port: String = "--port") {
      self.host = host
      self.port = port
    }
  }

  /// The maximum size of the path of a socket in bytes, as swift-nio has it.
  static let maxPathByteCount = 103

  package let description: String

  /// - Parameters:
  ///   - reason: The error of the system.
  ///   - address: The address.
  ///   - options: The options that choose it.
  package init(_ reason: any Error, address: ListenAddress, options: Options = Options()) {
    let number = (reason as? IOError)?.errnoCode
    let text = number.map { String(cString: strerror($0)) } ?? "\(reason)"
    description =
      switch address {
      case .tcp(let host, _) where reason is SocketAddressError.UnknownHost:
        "\(options.host) \(host) cannot be resolved"
      case .tcp where number == EADDRINUSE: "address already in use: \(address) (\(options.port))"
      case .tcp where number == EADDRNOTAVAIL: "not an address of this machine: \(address) (\(options.host))"
      case .tcp: "cannot listen on \(address) (\(options.port)): \(text)"
      case .unix(let path, _) where path.utf8.count > Self.maxPathByteCount:
        "--unix-socket \(path) has \(path.utf8.count) bytes; it must have at most \(Self.maxPathByteCount)"
      case .unix(let path, _): "cannot listen on \(path) (--unix-socket): \(text)"
      case .inherited(let descriptor): "cannot listen on the socket passed as descriptor \(descriptor): \(text)"
      }
  }

  /// Whether an error comes from the system.
  package static func isOfSystem(_ reason: any Error) -> Bool {
    reason is IOError || reason is SocketAddressError.UnknownHost
  }

  /// Whether an error of the system means that another socket has the address.
  package static func isInUse(_ reason: any Error) -> Bool { (reason as? IOError)?.errnoCode == EADDRINUSE }
}
