internal import CPlatform
internal import LibC
internal import NIOCore
internal import NIOPosix

/// The file of a Unix domain socket.
///
/// A file that a killed process left behind is replaced, and no more users than intended can ever connect.
struct UnixSocketFile {
  let path: String
  /// Permissions of the file, as in `0o660`.
  let permissions: UInt32

  /// A reason why the file cannot be used.
  enum Failure: Error, Equatable, CustomStringConvertible {
    case inUse
    case notASocket
    case failed(String, errno: Int32)

    var description: String {
      switch self {
      case .inUse: "another process listens on it"
      case .notASocket: "the path exists and is not a socket"
      case .failed(let operation, let code): "\(operation) failed: \(String(cString: strerror(code)))"
      }
    }
  }

  /// Binds a socket to the file, sets its permissions, and lets `body` listen on the socket.
  ///
  /// The file is removed when the socket is closed, unless another process has replaced it. SwiftNIO would remove it in
  /// any case if it bound the socket itself.
  ///
  /// - Throws: `Failure`, and the errors of `body`.
  func listen<Inbound: Sendable, Outbound: Sendable>(
    _ body: (NIOBSDSocket.Handle) async throws -> NIOAsyncChannel<Inbound, Outbound>
  ) async throws -> NIOAsyncChannel<Inbound, Outbound> {
    let address = try SocketAddress(unixDomainSocketPath: path)
    try await removeStale()
    let listener = try await body(try bound(to: address))
    guard chmod(path, mode_t(permissions)) == 0 else { throw Failure.failed("chmod", errno: errno) }
    let own = number
    listener.channel.closeFuture.whenComplete { _ in
      if own != nil, number == own { unlink(path) }
    }
    return listener
  }

  /// Returns a socket with the file, to which only the worker's own user may connect until its permissions are set.
  private func bound(to address: SocketAddress) throws(Failure) -> NIOBSDSocket.Handle {
    #if os(Linux)
      let kind = Int32(SOCK_STREAM.rawValue)
    #else
      let kind = SOCK_STREAM
    #endif
    let descriptor = socket(AF_UNIX, kind, 0)
    guard descriptor >= 0 else { throw Failure.failed("socket", errno: errno) }
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    let mask = umask(0o177)
    let status = address.withSockAddr { LibC.bind(descriptor, $0, socklen_t($1)) }
    let code = errno
    umask(mask)
    guard status == 0 else {
      close(descriptor)
      throw Failure.failed("bind", errno: code)
    }
    return descriptor
  }

  /// The number of the file in its file system, which distinguishes it from a later one of the same path.
  private var number: UInt64? {
    var file = cplatform_file()
    return cplatform_file_read(path, &file) ? file.number : nil
  }

  /// Removes a socket on which nobody listens, as a process that was killed leaves it behind.
  private func removeStale() async throws {
    var file = cplatform_file()
    guard cplatform_file_read(path, &file) else { return }
    guard file.is_socket else { throw Failure.notASocket }
    do {
      let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
        .connect(unixDomainSocketPath: path).get()
      try? await channel.close()
      throw Failure.inUse
    } catch let error as IOError where [ECONNREFUSED, ENOENT].contains(error.errnoCode) {
      guard unlink(path) == 0 || errno == ENOENT else { throw Failure.failed("unlink", errno: errno) }
    }
  }
}
