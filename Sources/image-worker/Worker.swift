internal import Admission
internal import GRPCCore
internal import GRPCNIOTransportHTTP2Posix
internal import ImagePipeline
internal import Logging
internal import ResultCache
internal import ServiceLifecycle
internal import Tracing
internal import WorkerOperations
internal import WorkerPlayground
internal import WorkerProtocol
internal import WorkerService
internal import WorkerTelemetry

/// The gRPC server with its services, as one service of the process.
struct Worker: Service {
  private let settings: Settings
  private let telemetry: Telemetry
  private let metrics: MetricRegistry
  private let logger: Logger
  private let end: ProcessEnd
  private let supervisor: SupervisorEnvironment
  private let listenAddress: ListenAddress
  let security: Security
  let environment: WorkerEnvironment
  /// The address of the listener, for the commands that the playground shows.
  let address: WorkerAddress
  private let reflection: ReflectionService
  let health: HealthState
  let connections: ConnectionCount
  private let callLog: CallLog
  /// The load that balancers receive; `nil` without load reports.
  private let load: LoadMeter?
  private let codecs: CodecPlace

  init(
    settings: Settings, telemetry: Telemetry, metrics: MetricRegistry, logger: Logger, end: ProcessEnd,
    supervisor: SupervisorEnvironment
  ) throws {
    self.settings = settings
    self.telemetry = telemetry
    self.metrics = metrics
    self.logger = logger
    self.end = end
    self.supervisor = supervisor
    listenAddress = supervisor.listeningDescriptor.map(ListenAddress.inherited) ?? settings.listenAddress
    try settings.security.check(listenAddress)
    let presets = try settings.presets?.read() ?? PresetCatalog()
    security = try Security(settings.security, presets: presets, metrics: metrics, logger: logger)
    if let fonts = settings.fonts { TextOverlay.addFonts(ofDirectory: fonts) }
    try FaceDetectorFile.load(settings.faceDetector)
    codecs = try settings.isolation.makePlace(settings)
    let overlays = try settings.overlays?.read() ?? []
    var environment = WorkerEnvironment(
      limits: settings.limits, presets: presets, cache: try settings.cache.map { try Self.cache($0, logger: logger) },
      memoryLimit: settings.workMemoryLimit, receivesMessages: true, threadCount: settings.threadCount,
      helpers: codecs.helpers, metrics: metrics)
    environment.overlays.replace(with: overlays)
    environment.takesOnlyPresets = settings.takesOnlyPresets
    environment.tracer = telemetry.tracer
    environment.callers = security.callers
    environment.readContexts()
    load = settings.reportsLoad ? Self.meter(of: &environment, threadCount: settings.threadCount) : nil
    environment.takesSharedMemory = settings.takesSharedMemory
    if settings.servesInference { environment.keep = { ServiceContext.current?.call?.keep($0) } }
    self.environment = environment
    let methods =
      Imageworker_V1_ImageWorkerService.Method.descriptors + OperationalServices.methods
      + (settings.servesInference ? InferenceService.methods : [])
    callLog = CallLog(metrics: metrics, logger: logger, methods: Set(methods.map(\.fullyQualifiedMethod)))
    connections = ConnectionCount(limit: settings.maxConnections, perPeer: settings.maxConnectionsPerPeer)
    address = WorkerAddress(isSecure: settings.security.tls != nil)
    reflection = try ReflectionService(without: settings.servesInference ? [] : [InferenceService.name])
    health = HealthState(services: Set(reflection.serviceNames))
  }

  private static func cache(_ limits: CacheLimits, logger: Logger) throws(SettingsError) -> ResultCache {
    do throws(CacheError) { return try ResultCache(limits: limits, logger: logger) } catch {
      throw SettingsError(description: "--cache-directory \(error)")
    }
  }

  /// Returns a meter that receives the work of the environment's images from now on.
  private static func meter(of environment: inout WorkerEnvironment, threadCount: Int) -> LoadMeter {
    let memory = environment.memory
    let meter = LoadMeter(
      threadCount: threadCount,
      memoryUtilization: { Double(memory.used) / Double(max(1, memory.limit)) })
    environment.noteWork = { meter.note(isWorking: $0) }
    environment.worked = { duration, context in context?.call?.addWork(duration) }
    return meter
  }

  private typealias Transport = HTTP2ServerTransport.Custom<WorkerListener>

  private struct Child {
    let name: String
    /// Whether the worker ends when the task does; otherwise the task is cancelled when the worker ends.
    var endsWorker = false
    var executor: (any TaskExecutor)?
    let run: @Sendable () async throws -> Void
  }

  /// Serves until a graceful shutdown has let the work in flight finish.
  func run() async throws {
    observe()
    let notifier = await SupervisorNotifier.connect(supervisor, logger: logger)
    try await withThrowingTaskGroup(of: Child.self) { group in
      for child in children(notifier) {
        group.addTask(name: child.name, executorPreference: child.executor) {
          try await child.run()
          return child
        }
      }
      for try await child in group where child.endsWorker { break }
      group.cancelAll()
    }
    await notifier?.close()
    // What is left is telemetry, which has a limit of its own.
    end.limit(to: .seconds(15))
    logger.notice("stopped")
  }

  private func children(_ notifier: SupervisorNotifier?) -> [Child] {
    let transport = Transport(listenerFactory: listener, config: configuration)
    let server = GRPCServer(transport: transport, services: services, interceptors: interceptors)
    var children = [
      Child(name: "serve", endsWorker: true, executor: EventLoopExecutor.shared) {
        try await withGracefulShutdownHandler(operation: server.serve) {
          notifier?.reportStopping()
          drain(server, transport)
        }
      },
      Child(name: "announce") {
        guard let address = await transport.listeningAddress, !Task.isShuttingDownGracefully else { return }
        announce(address)
        // The drain may have begun meanwhile.
        if Task.isShuttingDownGracefully { return health.set(.notServing) }
        notifier?.reportReady()
      },
      Child(name: "end late work", endsWorker: true) { await cancelWorkWhenDrainTakesTooLong() },
    ]
    if let notifier, let timeout = supervisor.watchdogTimeout {
      children.append(Child(name: "report life") { await notifier.reportLife(every: timeout, health: health) })
    }
    if let limit = settings.stuckThreadLimit {
      let watch = StuckThreadWatch(
        executors: [environment.executor, environment.expressExecutor], limit: limit, health: health, logger: logger)
      children.append(Child(name: "watch threads") { await watch.run() })
    }
    return children
  }

  private var listener: WorkerListener {
    var options = WorkerListener.Options()
    options.sharesPort = settings.sharesPort
    options.allowsOtherMachines = settings.security.allowsOtherMachines
    options.fallsBackToAnyPort = settings.choosesPort
    return WorkerListener(
      address: listenAddress, limits: connectionLimits, tls: security.listener, authenticator: security.authenticator,
      options: options)
  }

  /// The time that a cancelled image may take to notice it, before the process ends without it.
  private static var cancellationLimit: Duration { .seconds(5) }

  private func announce(_ address: SocketAddress) {
    self.address.current = address.clientText
    health.set(.serving)
    logger.notice(
      "serving",
      metadata: [
        "address": "\(address.text)", "threads": "\(settings.threadCount)", "security": "\(settings.security.summary)",
      ])
    // That of an inherited socket is known only now.
    let bound = address.ipv4.map { ($0.host, $0.port) } ?? address.ipv6.map { ($0.host, $0.port) }
    let isInherited = supervisor.listeningDescriptor != nil
    settings.security.warn(
      of: isInherited ? bound.map { .tcp(host: $0.0, port: $0.1) } ?? listenAddress : listenAddress, logger)
    settings.isolation.log(codecs, logger)
  }

  /// Tells callers to go elsewhere first.
  ///
  /// Calls that they have sent before they learn of it are still served.
  private func drain(_ server: GRPCServer<Transport>, _ transport: Transport) {
    logger.notice("draining", metadata: ["calls": "\(environment.drain.workCount)"])
    end.limit(to: settings.drainTimeout + Self.cancellationLimit)
    health.set(.notServing)
    Task {
      // A listener that is set up later would not be shut down.
      _ = await transport.listeningAddress
      server.beginGracefulShutdown()
      // Later, so that items of batches are taken that were sent before their client could know.
      try? await Task.sleep(for: .milliseconds(200))
      environment.drain.begin()
    }
  }

  private func cancelWorkWhenDrainTakesTooLong() async {
    do {
      try await gracefulShutdown()
      try await Task.sleep(for: settings.drainTimeout)
    } catch { return }
    logger.warning("drain timed out; cancelling work", metadata: ["calls": "\(environment.drain.workCount)"])
    end.noteTimeout()
    environment.drain.cancelWork()
    // Calls end within a strip.
    try? await Task.sleep(for: .seconds(2))
  }

  /// Begins to record what the worker has reserved and waits for.
  private func observe() {
    security.observe()
    for library in WorkerVersion.libraries {
      metrics.observe("imageworker.library_info", [.init("library", library.name), .init("version", library.version)]) {
        1
      }
    }
    let (memory, drain) = (environment.memory, environment.drain)
    metrics.observe("imageworker.calls.active") { Double(drain.workCount) }
    let threadQueue = environment.threadQueue
    metrics.observe("imageworker.queue.length") { Double(memory.waitingCount + threadQueue.waitingCount) }
    metrics.observe("imageworker.memory.budget.limit") { Double(memory.limit) }
    metrics.observe("imageworker.memory.budget.used") { Double(memory.used) }
    metrics.observe("imageworker.memory.budget.peak") { Double(memory.peak) }
    metrics.observe("imageworker.messages.received") { Double(memory.received) }
    metrics.observe("imageworker.messages.waiting") { Double(memory.waitingMessageCount) }
    let connections = connections
    metrics.observe("imageworker.connections.active") { Double(connections.openCount) }
    metrics.observe("imageworker.connections.refused") { Double(connections.refusedCount) }
    let helpers = environment.helpers
    metrics.observe("imageworker.helpers") { Double(helpers?.count ?? 0) }
    metrics.observe("imageworker.helpers.started") { Double(helpers?.startedCount ?? 0) }
    metrics.observe("imageworker.helpers.lost") { Double(helpers?.lostCount ?? 0) }
    metrics.observe("imageworker.zygotes.replaced") { Double(helpers?.replacedZygoteCount ?? 0) }
    metrics.observe("imageworker.descriptors.open") { Double(SpareDescriptors.usedCount() ?? 0) }
    metrics.observe("imageworker.descriptors.limit") { Double(SpareDescriptors.limit) }
    if let cache = environment.cache {
      metrics.observe("imageworker.cache.memory") { Double(cache.memoryByteCount) }
      metrics.observe("imageworker.cache.disk") { Double(cache.diskByteCount) }
    }
  }

  private var interceptors: [any ServerInterceptor] {
    let reports: [any ServerInterceptor] = load.map { [LoadReportInterceptor($0)] } ?? []
    let tracing = TracingInterceptor(tracer: telemetry.tracer)
    return [ListenerInterceptor(callLog), tracing, CallInterceptor(callLog)] + reports
  }

  private var services: [any RegistrableRPCService] {
    let reports: [any RegistrableRPCService] = load.map { [LoadReportService($0)] } ?? []
    let models = InferenceService(environment: environment, version: WorkerVersion.current) { [health] in
      health.status == .serving
    }
    let inference: [any RegistrableRPCService] = settings.servesInference ? [models] : []
    return [ImageWorkerService(environment: environment), HealthService(state: health), reflection] + reports
      + inference
  }

  private var connectionLimits: ConnectionLimits {
    var limits = settings.connectionLimits
    limits.logger = logger
    limits.callLog = callLog
    limits.imagePaths = ImageWorkerService.imagePaths
    limits.streamingPaths = ImageWorkerService.streamingPaths.union(ReflectionService.paths)
    limits.maxOtherMessageByteCount = RequestLimit.maxOtherByteCount
    limits.messages = environment.memory
    limits.calls = CallAdmission(ImageWorkerService(environment: environment))
    limits.connections = connections
    limits.isEnding = { [drain = environment.drain] in drain.isOver }
    return limits
  }

  private var configuration: HTTP2ServerTransport.Custom<WorkerListener>.Config {
    var configuration = HTTP2ServerTransport.Custom<WorkerListener>.Config.guarded
    // Above its limit the transport resets the stream without a word. Up to twice ours, the service can explain.
    configuration.rpc.maxRequestPayloadSize = 2 * settings.limits.maxMessageByteCount
    configuration.http2.targetWindowSize = settings.connectionLimits.windowByteCount
    configuration.http2.maxFrameSize = settings.connectionLimits.maxFrameByteCount
    configuration.http2.maxConcurrentStreams = settings.maxConnectionCalls
    // Results are written in few parts: waiting for more of them only wakes the event loop once more.
    configuration.connection.flushCoalescing = nil
    return configuration
  }
}

extension WorkerEnvironment {
  /// Reads the contexts of calls, as the listener and the tracer have left them.
  fileprivate mutating func readContexts() {
    traceID = { $0.traceID }
    isTraced = { $0.isTraced }
    deadline = { $0.call?.deadline }
    callerName = { $0.call?.callerName }
  }
}

extension SocketAddress {
  /// The address as clients of this machine spell it.
  fileprivate var clientText: String {
    switch (ipv4, ipv6) {
    case (let address?, _) where address.host == "0.0.0.0": "127.0.0.1:\(address.port)"
    case (_, let address?) where address.host == "::": "127.0.0.1:\(address.port)"
    default: text
    }
  }

  /// The address as people write it.
  fileprivate var text: String {
    if let address = ipv4 { return "\(address.host):\(address.port)" }
    if let address = ipv6 { return "[\(address.host)]:\(address.port)" }
    return unixDomainSocket.map { "unix:\($0.path)" } ?? ""
  }
}
