package import Logging
package import NIOCore
internal import LibC
internal import NIOHTTP1
internal import NIOPosix
internal import ServiceLifecycle
internal import Synchronization

/// Serves all metrics at `GET /metrics` for Prometheus to scrape, and the health of the worker at `GET /health` for probes
/// that know no gRPC or no TLS of it.
package struct MetricsEndpoint: Service {
  /// Maximum number of concurrent connections; a further one closes the one whose last request is the oldest.
  fileprivate static let maxConnections = 32
  /// Maximum time until a request has arrived, and again until its response is sent.
  fileprivate static let requestLimit = TimeAmount.seconds(30)

  private let host: String
  private let port: Int
  private let secure: (@Sendable (any Channel) throws -> Void)?
  private let hasRoom: @Sendable () -> Bool
  private let registry: MetricRegistry
  private let isServing: @Sendable () -> Bool
  private let logger: Logger

  /// Creates an endpoint.
  ///
  /// - Parameters:
  ///   - host: The address to listen on.
  ///   - port: The port number; 0 selects any free port.
  ///   - secure: Adds the handlers of TLS to an accepted connection; `nil` for plaintext.
  ///   - hasRoom: Returns whether a connection that was accepted is kept.
  ///   - registry: The metrics to serve.
  ///   - isServing: Returns whether the worker is healthy and serves.
  ///   - logger: The logger that reports the address.
  package init(
    host: String, port: Int, secure: (@Sendable (any Channel) throws -> Void)? = nil,
    hasRoom: @escaping @Sendable () -> Bool = { true }, registry: MetricRegistry,
    isServing: @escaping @Sendable () -> Bool, logger: Logger
  ) {
    self.host = host
    self.port = port
    self.secure = secure
    self.hasRoom = hasRoom
    self.registry = registry
    self.isServing = isServing
    self.logger = logger
  }

  /// Serves requests until a graceful shutdown.
  ///
  /// - Throws: An I/O error if the address cannot be bound.
  package func run() async throws {
    let content = MetricsContent(registry: registry, isServing: isServing)
    let (secure, hasRoom) = (secure, hasRoom)
    let channel = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          guard hasRoom() else { throw IOError(errnoCode: EMFILE, reason: "accept") }
          let pipeline = channel.pipeline.syncOperations
          try secure?(channel)
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

/// The sources of the answers of the endpoint, and its open connections.
private final class MetricsContent: Sendable {
  struct Answer {
    var status: HTTPResponseStatus
    var contentType = "text/plain"
    var text: String
  }

  private let registry: MetricRegistry
  private let isServing: @Sendable () -> Bool
  /// The open connections; the one with the last request is the last.
  private let connections = Mutex<[any Channel]>([])

  init(registry: MetricRegistry, isServing: @escaping @Sendable () -> Bool) {
    self.registry = registry
    self.isServing = isServing
  }

  /// Notes a connection or its request, and closes another connection if there are too many.
  func note(_ channel: any Channel) {
    let surplus: (any Channel)? = connections.withLock { connections in
      connections.removeAll { $0 === channel }
      connections.append(channel)
      return connections.count > MetricsEndpoint.maxConnections ? connections.removeFirst() : nil
    }
    surplus?.close(promise: nil)
  }

  func remove(_ channel: any Channel) { connections.withLock { $0.removeAll { $0 === channel } } }

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
  private var deadline: Scheduled<Void>?

  init(content: MetricsContent) { self.content = content }

  func channelActive(context: ChannelHandlerContext) {
    content.note(context.channel)
    restartDeadline(context)
    context.fireChannelActive()
  }

  func channelInactive(context: ChannelHandlerContext) {
    content.remove(context.channel)
    deadline?.cancel()
    context.fireChannelInactive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): self.head = head
    case .body: break
    case .end:
      guard let head else { return }
      self.head = nil
      content.note(context.channel)
      restartDeadline(context)
      answer(head, context)
    }
  }

  private func restartDeadline(_ context: ChannelHandlerContext) {
    deadline?.cancel()
    deadline = context.eventLoop.scheduleTask(in: MetricsEndpoint.requestLimit) { [channel = context.channel] in
      channel.close(promise: nil)
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  private func answer(_ request: HTTPRequestHead, _ context: ChannelHandlerContext) {
    let answer = content.answer(request)
    var head = HTTPResponseHead(version: request.version, status: answer.status)
    head.headers.add(name: "content-type", value: answer.contentType)
    head.headers.add(name: "content-length", value: "\(answer.text.utf8.count)")
    if answer.status == .methodNotAllowed { head.headers.add(name: "allow", value: "GET, HEAD") }
    let text = request.method == .HEAD ? "" : answer.text
    let isKept = request.isKeepAlive
    let channel = context.channel
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(channel.allocator.buffer(string: text))))).whenComplete {
      _ in
      // The next request may have arrived already: it waits until this response is sent, and others have had their turn.
      channel.eventLoop.execute {
        channel.writeAndFlush(HTTPServerResponsePart.end(nil)).whenComplete { _ in
          if !isKept { channel.close(promise: nil) }
        }
      }
    }
  }
}
