internal import ArgumentParser
internal import Configuration
internal import FoundationEssentials
internal import GRPCCore
internal import GRPCNIOTransportHTTP2Posix
internal import Logging
internal import ServiceLifecycle
internal import UnixSignals
internal import WorkerTelemetry
internal import WorkerService

/// `image-worker serve`.
struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Serve imageworker.v1.ImageWorkerService, health and reflection over gRPC.",
    discussion: """
      Every option can also be set in the environment (IMAGE_WORKER_PORT for --port) or in a YAML file (port: 50051; \
      names in camel case). An option wins over the environment, which wins over the file. Some settings have no option: \
      limits of streams, queues and scans, and those of HTTP/2 (maxScans, maxWaitingPictures, maxOpenUploads, \
      maxPicturesPerStream, maxConnectionCalls, maxConnectionPings, maxConnectionResets, metadataKib, listenBacklog, \
      windowKib, frameKib). Sources/WorkerService/Documentation.docc/Serving.md \
      has their units and defaults.

      Traces, metrics and logs go to the collector that the OTEL_EXPORTER_OTLP_ENDPOINT variable and its companions \
      name; without it nowhere.

      SIGTERM and SIGINT turn health to NOT_SERVING, let work in flight finish, and end the process with status 0, or 1 \
      when it did not finish within the drain timeout. A second one ends the process at once. \
      SIGHUP reads the file of presets again.
      """)

  @Option(help: "Address to listen on. Default: 127.0.0.1.")
  var host: String?
  @Option(help: "Port to listen on; 0 for any free one. Default: 50051.")
  var port: Int?
  @Option(help: "Pictures worked on at the same moment. Default: the number of cores.")
  var threads: Int?
  @Option(name: .customLong("memory-limit-mib"), help: "Memory that all pictures together may hold. Default: 768.")
  var memoryLimit: Int?
  @Option(name: .customLong("picture-memory-limit-mib"), help: "Memory that one picture may hold. Default: 384.")
  var pictureMemoryLimit: Int?
  @Option(name: .customLong("max-message-mib"), help: "Largest request message. Default: 64.")
  var maxMessage: Int?
  @Option(help: "Most pixels of a picture that is decoded strip by strip. Default: 500000000.")
  var maxPixels: Int?
  @Option(help: "Most pixels of a picture that must be held whole. Default: 100000000.")
  var maxHeldPixels: Int?
  @Option(
    help: "Directory for what a picture can't hold in memory; empty for none. Default: /var/tmp.",
    completion: .directory)
  var spillDirectory: String?
  @Option(name: .customLong("drain-timeout-seconds"), help: "How long work in flight may take to finish. Default: 30.")
  var drainTimeout: Int?
  @Option(help: "trace, debug, info, notice, warning, error or critical. Default: info.")
  var logLevel: String?
  @Option(help: "json or text. Default: text at a terminal, else json.")
  var logFormat: String?
  @Option(help: "Port on which GET /metrics tells Prometheus every metric; 0 for any free one. Default: none.")
  var metricsPort: Int?
  @Option(help: "Address of that port. Default: 127.0.0.1.")
  var metricsHost: String?
  @Option(name: .customLong("cache-memory-mib"), help: "Memory for results that are kept; 0 for none. Default: 100.")
  var cacheMemory: Int?
  @Option(help: "Directory for results that are kept in files. Default: none.", completion: .directory)
  var cacheDirectory: String?
  @Option(name: .customLong("cache-disk-mib"), help: "Most that the files of kept results may hold. Default: 500.")
  var cacheDisk: Int?
  @Option(help: "A YAML file of presets beside the built-in ones, which it may override.", completion: .file())
  var presets: String?
  @Flag(help: "Refuse requests that set fields of their own beside a preset.")
  var onlyPresets = false
  @Option(name: .customLong("config"), help: "A YAML file with settings.")
  var configurationFile: String?

  func run() async throws {
    // Before an error that is thrown is printed.
    defer { LogWriter.standardError.flush() }
    let environment = ProcessInfo.processInfo.environment
    let settings = try await Settings.read(flags: flags, file: configurationFile, environment: environment)
    let metrics = MetricRegistry()
    let telemetry = Telemetry(
      configuration: TelemetryConfiguration(environment: environment, processAttributes: SystemInfo.attributes),
      metrics: metrics, logger: Self.logger(settings, label: "telemetry", export: nil))
    metrics.observeProcess()
    metrics.observe(telemetry)

    let logger = Self.logger(settings, label: "image-worker", export: telemetry.log)
    let end = ProcessEnd(logger: logger)
    let worker = try Worker(settings: settings, telemetry: telemetry, metrics: metrics, logger: logger, end: end)
    // Stopped in reverse: what the last calls leave behind is still exported.
    var services: [ServiceGroupConfiguration.ServiceConfiguration] = [.init(service: telemetry)]
    if let port = settings.metricsPort {
      services.append(
        .init(service: MetricsEndpoint(host: settings.metricsHost, port: port, registry: metrics, logger: logger)))
    }
    if let source = settings.presets {
      let reloader = await PresetReloader(source: source, store: worker.environment.presetStore, logger: logger)
      services.append(.init(service: reloader))
    }
    services.append(.init(service: worker, successTerminationBehavior: .gracefullyShutdownGroup))
    let group = ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: services, gracefulShutdownSignals: [.sigterm, .sigint], logger: logger))
    let signals = Task { await end.watchSignals() }
    defer { signals.cancel() }
    try await group.run()
    if end.hasTimedOut { throw ExitCode.failure }
  }

  private static func logger(_ settings: Settings, label: String, export: LogExport?) -> Logger {
    var logger = Logger(label: label) { WorkerLogHandler(label: $0, format: settings.logFormat, export: export) }
    logger.logLevel = settings.logLevel
    return logger
  }

  private var flags: [String: ConfigContent] {
    let numbers: [String: Int?] = [
      "port": port, "threads": threads, "memoryLimitMib": memoryLimit, "pictureMemoryLimitMib": pictureMemoryLimit,
      "maxMessageMib": maxMessage, "maxPixels": maxPixels, "maxHeldPixels": maxHeldPixels,
      "drainTimeoutSeconds": drainTimeout, "metricsPort": metricsPort, "cacheMemoryMib": cacheMemory,
      "cacheDiskMib": cacheDisk,
    ]
    let texts: [String: String?] = [
      "host": host, "logLevel": logLevel, "logFormat": logFormat, "metricsHost": metricsHost,
      "spillDirectory": spillDirectory, "presets": presets, "cacheDirectory": cacheDirectory,
    ]
    let switches: [String: ConfigContent] = onlyPresets ? ["onlyPresets": .bool(true)] : [:]
    return numbers.compactMapValues { $0.map(ConfigContent.int) }
      .merging(texts.compactMapValues { $0.map(ConfigContent.string) }) { number, _ in number }
      .merging(switches) { other, _ in other }
  }
}
