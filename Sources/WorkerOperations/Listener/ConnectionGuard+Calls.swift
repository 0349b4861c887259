internal import Logging
internal import NIOCore

extension ConnectionGuard {
  /// The client's address in gRPC's notation, as `ServerContext.remotePeer` has it.
  ///
  /// A client on a Unix socket has the address of the socket that it connected to.
  var peerName: String {
    if let knownPeerName { return knownPeerName }
    let name = readPeerName()
    if context?.remoteAddress != nil { knownPeerName = name }
    return name
  }

  private func readPeerName() -> String {
    let (remote, local) = (context?.remoteAddress, context?.localAddress)
    return switch remote {
    case .v4(let address): "ipv4:\(address.host):\(remote?.port ?? 0)"
    case .v6(let address): "ipv6:[\(address.host)]:\(remote?.port ?? 0)"
    case .unixDomainSocket, nil: "unix:\([remote, local].compactMap { $0?.pathname }.first { !$0.isEmpty } ?? "")"
    }
  }

  /// Registers a call that begins; returns `false` if it arrived after the last call that is served.
  func begin(_ request: RequestGuard, stream: UInt32) -> Bool {
    requests[stream] = request
    return drain.accepts(stream)
  }

  /// Removes a call.
  ///
  /// - `wasReset`: whether the client cancelled it.
  /// - `wasServed`: whether the client has let it finish.
  func end(stream: UInt32, wasReset: Bool, wasServed: Bool) {
    guard let request = requests.removeValue(forKey: stream) else { return }
    if wasReset || request.messages.clientEnd != .none { ended.insert(stream) }
    if wasServed { allowances.noteFinishedCall() }
    closeWhenDrained()
  }
}

/// The last streams that the client has ended or cancelled.
///
/// It must send no data on them. On a stream that the worker alone has ended, data may still be on its way.
struct EndedStreams {
  private static let maxCount = 64

  private var streams: [UInt32] = []
  private var oldest = 0

  mutating func insert(_ stream: UInt32) {
    if streams.count < Self.maxCount {
      streams.append(stream)
    } else {
      streams[oldest] = stream
      oldest = (oldest + 1) % Self.maxCount
    }
  }

  func contains(_ stream: UInt32) -> Bool { streams.contains(stream) }
}
