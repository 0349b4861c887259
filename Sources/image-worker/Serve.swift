internal import ArgumentParser
internal import Configuration
internal import GRPCCore
internal import GRPCNIOTransportHTTP2Posix
internal import Logging
internal import ServiceLifecycle
internal import UnixSignals
internal import WorkerOperations
internal import WorkerService

/// `image-worker serve`.
struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Serve imageworker.v1.ImageWorkerService, health and reflection over gRPC.",
    discussion: """
      Every option can also be set in the environment (IMAGE_WORKER_PORT for --port) or in a YAML file (port: 50051; \
      names in camel case). An option wins over the environment, which wins over the file.

      SIGTERM and SIGINT turn health to NOT_SERVING, let work in flight finish, and end the process with status 0. \
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
    let settings = try await Settings.read(flags: flags, file: configurationFile)
    LoggingSystem.bootstrap { StreamLogHandler.standardError(label: $0) }
    var logger = Logger(label: "image-worker")
    logger.logLevel = settings.logLevel

    let worker = try Worker(settings: settings, logger: logger)
    var services: [ServiceGroupConfiguration.ServiceConfiguration] = [
      .init(service: worker, successTerminationBehavior: .gracefullyShutdownGroup)
    ]
    if let source = settings.presets {
      let reloader = await PresetReloader(source: source, store: worker.environment.presetStore, logger: logger)
      services.insert(.init(service: reloader), at: 0)
    }
    let group = ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: services, gracefulShutdownSignals: [.sigterm, .sigint], logger: logger))
    try await group.run()
  }

  private var flags: [String: ConfigContent] {
    let numbers: [String: Int?] = [
      "port": port, "threads": threads, "memoryLimitMib": memoryLimit, "pictureMemoryLimitMib": pictureMemoryLimit,
      "maxMessageMib": maxMessage, "maxPixels": maxPixels, "maxHeldPixels": maxHeldPixels,
      "drainTimeoutSeconds": drainTimeout, "cacheMemoryMib": cacheMemory, "cacheDiskMib": cacheDisk,
    ]
    let texts: [String: String?] = [
      "host": host, "logLevel": logLevel, "spillDirectory": spillDirectory, "presets": presets,
      "cacheDirectory": cacheDirectory,
    ]
    let switches: [String: ConfigContent] = onlyPresets ? ["onlyPresets": .bool(true)] : [:]
    return numbers.compactMapValues { $0.map(ConfigContent.int) }
      .merging(texts.compactMapValues { $0.map(ConfigContent.string) }) { number, _ in number }
      .merging(switches) { other, _ in other }
  }
}
