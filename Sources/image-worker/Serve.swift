internal import ArgumentParser
internal import FoundationEssentials
internal import GRPCCore
internal import GRPCNIOTransportHTTP2Posix
internal import Logging
internal import ServiceLifecycle
internal import UnixSignals
internal import WorkerOperations
internal import WorkerPlayground
internal import WorkerService
internal import WorkerTelemetry

struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Serve imageworker.v1.ImageWorkerService, health and reflection over gRPC.",
    discussion: """
      Examples:
        image-worker serve
        image-worker serve --port 8080 --presets presets.yaml --metrics-port 9090

      Set each value as an option (--port 50051), in the environment (IMAGE_WORKER_PORT=50051) or in a YAML file \
      (port: 50051; names in camel case). An option overrides the environment, which overrides the file. Unknown \
      names are errors.

      Set OTEL_EXPORTER_OTLP_ENDPOINT and related variables to export traces, metrics and logs to a collector. \
      Without them nothing is exported.

      On SIGTERM or SIGINT, health becomes NOT_SERVING and calls in progress finish; the exit status is 0, or 1 if \
      they do not finish within the drain timeout. A second signal exits at once. SIGHUP reloads the files of presets, overlays, TLS and identities.
      """)

  @Option(
    name: .customLong("config"), help: ArgumentHelp("Read settings from a YAML file.", valueName: "file"),
    completion: .file())
  var configurationFile: String?
  @OptionGroup(title: "Settings")
  var options: TableOptions<SettingOptions>

  func validate() throws { try Self.validate(options.values) }

  func run() async throws { try await Self.run(options.values, file: configurationFile) }

  /// Checks the options, before the environment and the file are read.
  static func validate(_ options: OptionValues) throws {
    do { _ = try Settings.read(options: options, file: nil, environment: [:]) } catch {
      throw ValidationError("\(error).")
    }
  }

  /// Serves until a signal ends the process.
  /// - `adjust`: changes the settings that were read.
  static func run(
    _ options: OptionValues, file: String?, adjust: (inout Settings) -> Void = { _ in }
  ) async throws {
    // Before an error that is thrown is printed.
    defer { LogWriter.standardError.flush() }
    let environment = ProcessInfo.processInfo.environment
    var settings = try Settings.read(options: options, file: file, environment: environment)
    adjust(&settings)
    try SystemLimits.checkDescriptors(threadCount: settings.threadCount)
    try SystemLimits.checkThreads(threadCount: settings.threadCount)
    let metrics = MetricRegistry()
    let telemetry = Telemetry(
      configuration: TelemetryConfiguration(environment: environment, processAttributes: SystemInfo.attributes),
      metrics: metrics, logger: Self.logger(settings, label: "telemetry", export: nil))
    metrics.observeProcess()
    metrics.observe(telemetry)

    let logger = Self.logger(settings, label: "image-worker", export: telemetry.log)
    if let room = SystemMemory.current.shortage(for: settings.memoryLimit) {
      logger.warning(
        "--memory-limit-mib does not fit into the memory that this system or container allows; the kernel may end the worker",
        metadata: ["memory_limit_mib": "\(settings.memoryLimit >> 20)", "room_mib": "\(room >> 20)"])
    }
    let end = ProcessEnd(logger: logger)
    let supervisor = try SupervisorEnvironment(environment, processID: ProcessInfo.processInfo.processIdentifier)
    let playground = try settings.playgroundAddress
    let worker = try Worker(
      settings: settings, telemetry: telemetry, metrics: metrics, logger: logger, end: end, supervisor: supervisor)
    let services = await Self.services(settings, worker, playground, telemetry, metrics, logger)
    let group = ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: services + [.init(service: worker, successTerminationBehavior: .gracefullyShutdownGroup)],
        logger: logger.ofServiceGroup))
    let signals = Task { await end.watchSignals { await group.triggerGracefulShutdown() } }
    defer { signals.cancel() }
    do { try await group.run() } catch let error as RuntimeError {
      // The transport wraps the error of the listener in one of its own.
      throw error.cause ?? error
    }
    if end.hasTimedOut { throw ExitStatus.failure.code }
  }

  /// The services that run together with the worker.
  ///
  /// They are stopped in reverse: what the last calls leave behind is still exported.
  private static func services(
    _ settings: Settings, _ worker: Worker, _ playground: Playground.Address?, _ telemetry: Telemetry,
    _ metrics: MetricRegistry, _ logger: Logger
  ) async -> [ServiceGroupConfiguration.ServiceConfiguration] {
    let environment = worker.environment
    let endpoint = settings.metricsPort.map { port in
      ListeningService(
        base: MetricsEndpoint(
          host: settings.metricsHost, port: port, secure: worker.security.metricsListener?.secure,
          hasRoom: ConnectionRoom().suffices, registry: metrics,
          isServing: { [health = worker.health] in health.status == .serving }, logger: logger),
        address: .tcp(host: settings.metricsHost, port: port),
        options: ListenError.Options(host: "--metrics-host", port: "--metrics-port"))
    }
    let page = playground.map { address in
      ListeningService(
        base: Playground(
          address: address, environment: environment, worker: worker.address, hasRoom: ConnectionRoom().suffices,
          logger: logger),
        address: .tcp(host: address.host, port: address.port),
        options: ListenError.Options(host: "--playground-host", port: "--playground-port"))
    }
    let idle = IdleMemoryService(
      drain: environment.drain, connections: worker.connections, memory: environment.memory,
      helpers: environment.helpers)
    let zygote = environment.helpers.map { ZygoteService(helpers: $0, logger: logger) }
    let reloaders = await reloaders(settings, worker, logger)
    let services: [(any Service)?] = [telemetry, endpoint] + reloaders.map { $0 } + [page, idle, zygote]
    return services.compactMap { $0.map { .init(service: $0) } }
  }

  /// The services that read files again.
  private static func reloaders(_ settings: Settings, _ worker: Worker, _ logger: Logger) async -> [Reloader] {
    let (environment, security) = (worker.environment, worker.security)
    var reloaders: [Reloader] = []
    if let source = settings.presets {
      reloaders.append(await Reloader { source.reload(environment.presetStore, logger) })
    }
    if let source = settings.overlays {
      reloaders.append(await Reloader { source.reload(environment.overlays, logger) })
    }
    if settings.security.isProtected {
      reloaders.append(await Reloader(every: settings.security.reloadInterval) { security.reload() })
    }
    if reloaders.isEmpty {
      // Without a handler the signal would end the worker and its calls.
      reloaders.append(await Reloader { logger.info("SIGHUP is ignored, as this worker has no files to read again") })
    }
    return reloaders
  }

  private static func logger(_ settings: Settings, label: String, export: LogExport?) -> Logger {
    var logger = Logger(label: label) { WorkerLogHandler(label: $0, format: settings.logFormat, export: export) }
    logger.logLevel = settings.logLevel
    return logger
  }
}

/// A service with a listener, whose error names the options of its address.
struct ListeningService<Base: Service>: Service {
  let base: Base
  let address: ListenAddress
  let options: ListenError.Options

  func run() async throws {
    do { try await base.run() } catch {
      throw ListenError.isOfSystem(error) ? ListenError(error, address: address, options: options) : error
    }
  }
}

extension Logger {
  /// The logger of the services' group, which at lower levels logs all that each service contains.
  fileprivate var ofServiceGroup: Logger {
    var logger = self
    logger.logLevel = max(logLevel, .notice)
    return logger
  }
}
