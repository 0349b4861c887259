internal import GRPCCore
internal import GRPCNIOTransportHTTP2Posix
internal import NIOCore

/// A connection to a collector, opened on first use and reopened when it is lost.
final class OTLPConnection: Sendable {
  let client: GRPCClient<HTTP2ClientTransport.Posix>

  /// Creates a connection; throws if a certificate or key cannot be read.
  init(_ endpoint: OTLPEndpoint) throws {
    let security: HTTP2ClientTransport.Posix.TransportSecurity =
      if let tls = endpoint.tls { .tls(Self.configuration(tls)) } else { .plaintext }
    client = GRPCClient(
      transport: try HTTP2ClientTransport.Posix(
        target: Self.target(endpoint), transportSecurity: security,
        config: .defaults { config in
          config.compression.algorithm = endpoint.usesGzip ? .gzip : .none
          config.compression.enabledAlgorithms = [.gzip]
          // Reconnection continues while the worker runs; this is the maximum delay until a returning collector is
          // found.
          config.backoff.max = .seconds(10)
          config.channelDebuggingCallbacks.onCreateTCPConnection = { channel in
            channel.eventLoop.makeCompletedFuture {
              try channel.pipeline.syncOperations.addHandler(AnswerLimit(), position: .first)
            }
          }
        }))
  }

  /// Maintains the connection until `close()` is called or the task is cancelled.
  func run() async {
    // It throws when its task is cancelled; nothing is left to do then.
    try? await client.runConnections()
  }

  func close() { client.beginGracefulShutdown() }

  private static func configuration(_ tls: OTLPEndpoint.TLS) -> HTTP2ClientTransport.Posix.TransportSecurity.TLS {
    .defaults { config in
      if let path = tls.trustedCertificate { config.trustRoots = .certificates([.file(path: path, format: .pem)]) }
      if let path = tls.clientCertificate { config.certificateChain = [.file(path: path, format: .pem)] }
      if let path = tls.clientKey { config.privateKey = .file(path: path, format: .pem) }
    }
  }

  private static func target(_ endpoint: OTLPEndpoint) -> any ResolvableTarget {
    if endpoint.host.contains(":") { return .ipv6(address: endpoint.host, port: endpoint.port) }
    let isAddress = endpoint.host.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == 0x2e }
    return isAddress
      ? .ipv4(address: endpoint.host, port: endpoint.port) : .dns(host: endpoint.host, port: endpoint.port)
  }
}

/// Closes a connection on which a collector sends more bytes than answers to exports have, and each one after many.
///
/// The buffer of the HTTP/2 parser grows with frames of kinds that it ignores (seen with swift-nio-http2 1.46.0).
final class AnswerLimit: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  /// The bytes that may arrive at once.
  static let burst = 1 << 20
  private static let perSecond = 64 << 10
  /// The bytes after which a new connection begins with an empty buffer.
  private static let maxByteCount = 32 << 20

  private var left = burst
  private var byteCount = 0
  private var updated = NIODeadline.now()

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let now = NIODeadline.now()
    let earned = min((now - updated).nanoseconds / 1_000_000 * Int64(Self.perSecond) / 1000, Int64(Self.burst))
    // So that parts of a millisecond are not lost.
    if earned > 0 { updated = now }
    let count = unwrapInboundIn(data).readableBytes
    byteCount += count
    left = min(Self.burst, left + Int(earned)) - count
    guard left >= 0, byteCount <= Self.maxByteCount else { return context.close(promise: nil) }
    context.fireChannelRead(data)
  }
}
