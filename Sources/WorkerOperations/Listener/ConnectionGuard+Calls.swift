internal import Logging
internal import NIOCore

extension ConnectionGuard {
  /// The client's address in gRPC's notation, as `ServerContext.remotePeer` has it.
  ///
  /// A client on a Unix socket has the address of the socket that it connected to.
  var peerName: String {
    if let knownPeerName { return knownPeerName }
    let (remote, local) = (context?.remoteAddress, context?.localAddress)
    let name =
      switch remote {
      case .v4(let address): "ipv4:\(address.host):\(remote?.port ?? 0)"
      case .v6(let address): "ipv6:[\(address.host)]:\(remote?.port ?? 0)"
      case .unixDomainSocket, nil: "unix:\([remote, local].compactMap { $0?.pathname }.first { !$0.isEmpty } ?? "")"
      }
    if remote != nil { knownPeerName = name }
    return name
  }

  /// Removes a call.
  ///
  /// - `wasReset`: whether the client cancelled it.
  /// - `wasServed`: whether the client has let it finish.
  func end(stream: UInt32, wasReset: Bool, wasServed: Bool) {
    guard let request = requests.removeValue(forKey: stream) else { return }
    if wasReset || request.messages.clientEnd != .none { noteEnded(stream) }
    if wasServed { allowances.earlyResets.earn() }
    closeWhenDrained()
  }

  /// Notes a stream that the client has ended or cancelled; 64 of them are remembered.
  func noteEnded(_ stream: UInt32) {
    if ended.count == 64 { ended.removeFirst() }
    ended.append(stream)
  }
}
