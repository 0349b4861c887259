package import Logging
package import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import ServiceLifecycle
internal import Synchronization

/// Serves all metrics at `GET /metrics` for Prometheus to scrape, and the health of the worker at `GET /health` for probes
/// that know no gRPC or no TLS of it.
package struct MetricsEndpoint: Service {
  /// Maximum number of concurrent connections; further ones are closed.
  fileprivate static let maxConnections = 32
  /// Time after which an idle connection is closed.
  private static let idleLimit = TimeAmount.seconds(30)

  private let host: String
  private let port: Int
  private let secure: (@Sendable (any Channel) throws -> Void)?
  private let registry: MetricRegistry
  private let isServing: @Sendable () -> Bool
  private let logger: Logger

  /// Creates an endpoint.
  ///
  /// - Parameters:
  ///   - host: The address to listen on.
  ///   - port: The port number; 0 selects any free port.
  ///   - secure: Adds the handlers of TLS to an accepted connection; `nil` for plaintext.
  ///   - registry: The metrics to serve.
  ///   - isServing: Returns whether the worker is healthy and serves.
  ///   - logger: The logger that reports the address.
  package init(
    host: String, port: Int, secure: (@Sendable (any Channel) throws -> Void)? = nil, registry: MetricRegistry,
    isServing: @escaping @Sendable () -> Bool, logger: Logger
  ) {
    self.host = host
    self.port = port
    self.secure = secure
    self.registry = registry
    self.isServing = isServing
    self.logger = logger
  }

  /// Serves requests until a graceful shutdown.
  ///
  /// - Throws: An I/O error if the address cannot be bound.
  package func run() async throws {
    let (content, secure) = (MetricsContent(registry: registry, isServing: isServing), secure)
    let channel = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          try secure?(channel)
          try pipeline.addHandler(IdleStateHandler(allTimeout: Self.idleLimit))
          try pipeline.configureHTTPServerPipeline()
          try pipeline.addHandler(MetricsHandler(content: content))
        }
      }
      .bind(host: host, port: port).get()
    let address = channel.localAddress
    let ip = address?.ipAddress ?? host
    logger.notice(
      "metrics",
      metadata: ["address": "\(ip.contains(":") ? "[\(ip)]" : ip):\(address?.port ?? port)"])
    try? await gracefulShutdown()
    try? await channel.close()
  }
}

/// The sources of the answers of the endpoint, and the number of its open connections.
private final class MetricsContent: Sendable {
  struct Answer {
    var status: HTTPResponseStatus
    var contentType = "text/plain"
    var text: String
  }

  private let registry: MetricRegistry
  private let isServing: @Sendable () -> Bool
  let connectionCount = Atomic(0)

  init(registry: MetricRegistry, isServing: @escaping @Sendable () -> Bool) {
    self.registry = registry
    self.isServing = isServing
  }

  func answer(_ request: HTTPRequestHead) -> Answer {
    let path = request.uri.prefix { $0 != "?" }
    guard ["/metrics", "/health"].contains(path) else { return refusal(.notFound) }
    guard request.method == .GET || request.method == .HEAD else { return refusal(.methodNotAllowed) }
    if path == "/health" {
      return isServing()
        ? Answer(status: .ok, text: "SERVING\n") : Answer(status: .serviceUnavailable, text: "NOT_SERVING\n")
    }
    let format = PrometheusText.Format(accept: request.headers["accept"])
    return Answer(
      status: .ok, contentType: format.contentType, text: PrometheusText.format(registry.collect(), as: format))
  }

  private func refusal(_ status: HTTPResponseStatus) -> Answer {
    Answer(status: status, text: "\(status.reasonPhrase)\n")
  }
}

/// Handles the requests of one connection.
private final class MetricsHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private let content: MetricsContent
  private var head: HTTPRequestHead?

  init(content: MetricsContent) { self.content = content }

  func channelActive(context: ChannelHandlerContext) {
    let count = content.connectionCount.add(1, ordering: .relaxed).newValue
    if count > MetricsEndpoint.maxConnections { context.close(promise: nil) }
    context.fireChannelActive()
  }

  func channelInactive(context: ChannelHandlerContext) {
    content.connectionCount.subtract(1, ordering: .relaxed)
    context.fireChannelInactive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): self.head = head
    case .body: break
    case .end:
      guard let head else { return }
      self.head = nil
      answer(head, context)
    }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard event is IdleStateHandler.IdleStateEvent else { return context.fireUserInboundEventTriggered(event) }
    context.close(promise: nil)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  private func answer(_ request: HTTPRequestHead, _ context: ChannelHandlerContext) {
    let answer = content.answer(request)
    var head = HTTPResponseHead(version: request.version, status: answer.status)
    head.headers.add(name: "content-type", value: answer.contentType)
    head.headers.add(name: "content-length", value: "\(answer.text.utf8.count)")
    if answer.status == .methodNotAllowed { head.headers.add(name: "allow", value: "GET, HEAD") }
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    if request.method != .HEAD {
      let body = context.channel.allocator.buffer(string: answer.text)
      context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
    }
    let isKept = request.isKeepAlive
    let channel = context.channel
    context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in
      if !isKept { channel.close(promise: nil) }
    }
  }
}
