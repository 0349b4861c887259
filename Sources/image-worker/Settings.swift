internal import Configuration
internal import ImageCodecs
internal import ImagePipeline
internal import Logging
internal import ResultCache
internal import SystemPackage
internal import WorkerTelemetry
internal import WorkerService

/// The settings of `serve`.
///
/// A flag wins over the environment, which wins over the file, which wins over the default. Those without a flag stand in
/// the table of WorkerService's article Serving.
struct Settings {
  var host: String
  var port: Int
  var threadCount: Int
  var memoryLimit: Int
  var drainTimeout: Duration
  /// HTTP/2 flow-control window of a connection and of each of its streams.
  var windowByteCount: Int
  /// Largest HTTP/2 frame that a client may send.
  var frameByteCount: Int
  /// Calls that a connection may have under way; its client holds back others.
  ///
  /// What a call sends in one message is in memory before the picture can be admitted.
  var maxConnectionCalls: Int
  /// PING frames that a connection may bring in 30 seconds, and cancelled calls in 10, beyond those of a client that works.
  var maxConnectionPings: Int
  var maxConnectionResets: Int
  /// Maximum size of a call's metadata.
  var metadataByteCount: Int
  /// Connections that wait for being accepted.
  var listenBacklog: Int
  var logLevel: Logger.Level
  var logFormat: LogFormat
  /// Where metrics are told to Prometheus; no port, not at all.
  var metricsHost: String
  var metricsPort: Int?
  var limits: WorkerLimits
  /// The file of presets, when there is one.
  var presets: PresetSource?
  var takesOnlyPresets: Bool
  /// What is kept of results; `nil` for nothing.
  var cache: CacheLimits?

  /// - `flags`: the settings given on the command line.
  /// - `file`: the path of a YAML file, or `nil`.
  /// - `environment`: the process' variables; `LOG_LEVEL` is read beside those of this worker's own.
  /// - Throws: `SettingsError` naming the setting, or what reading the file throws.
  static func read(flags: [String: ConfigContent], file: String?, environment: [String: String]) async throws
    -> Settings
  {
    let values = flags.reduce(into: [AbsoluteConfigKey: ConfigValue]()) { values, flag in
      values[AbsoluteConfigKey([flag.key])] = ConfigValue(flag.value, isSecret: false)
    }
    var common: [AbsoluteConfigKey: ConfigValue] = [:]
    if let level = environment["LOG_LEVEL"], !level.isEmpty {
      common["logLevel"] = ConfigValue(.string(level.lowercased()), isSecret: false)
    }
    var providers: [any ConfigProvider] = [
      InMemoryProvider(name: "command line", values: values),
      EnvironmentVariablesProvider().prefixKeys(with: "image.worker"),
      InMemoryProvider(name: "common environment", values: common),
    ]
    if let file { providers.append(try await FileProvider<YAMLSnapshot>(filePath: FilePath(file))) }
    return try Settings(ConfigReader(providers: providers))
  }

  private init(_ config: ConfigReader) throws {
    host = Self.address(config, "host")
    port = try Self.int(config, "port", default: 50051, in: 0...65535)
    threadCount = try Self.int(config, "threads", default: SystemInfo.coreCount, in: 1...1024)
    memoryLimit = try Self.int(config, "memoryLimitMib", default: 768, in: 32...1_048_576) << 20
    drainTimeout = .seconds(try Self.int(config, "drainTimeoutSeconds", default: 30, in: 0...3600))
    // Chosen by measurement: see "Windows" in Design.md.
    windowByteCount = try Self.int(config, "windowKib", default: 1024, in: 64...65_536) << 10
    frameByteCount = try Self.int(config, "frameKib", default: 256, in: 16...16_383) << 10
    maxConnectionCalls = try Self.int(config, "maxConnectionCalls", default: 100, in: 1...1_000_000)
    limits = try Self.limits(config)
    presets = config.string(forKey: "presets").map { PresetSource(path: FilePath($0)) }
    takesOnlyPresets = try Self.bool(config, "onlyPresets")
    cache = try Self.cache(config)
    maxConnectionPings = try Self.int(config, "maxConnectionPings", default: 200, in: 10...1_000_000)
    maxConnectionResets = try Self.int(config, "maxConnectionResets", default: 1000, in: 10...1_000_000)
    metadataByteCount = try Self.int(config, "metadataKib", default: 16, in: 4...64) << 10
    listenBacklog = try Self.int(config, "listenBacklog", default: 4096, in: 1...65_535)
    logLevel = try Self.choice(config, "logLevel", option: "log-level", default: Logger.Level.info)
    logFormat = try Self.choice(config, "logFormat", option: "log-format", default: WorkerLogHandler.fittingFormat)
    metricsHost = Self.address(config, "metricsHost")
    metricsPort = try Self.int(config, "metricsPort", default: -1, in: -1...65535)
    if metricsPort == -1 { metricsPort = nil }
  }

  /// An address to listen on, loopback unless given.
  private static func address(_ config: ConfigReader, _ key: String) -> String {
    let name = config.string(forKey: ConfigKey([key]), default: "127.0.0.1")
    // Of a name only the first address is listened on, which for this one may be ::1, where fewer clients look.
    return name == "localhost" ? "127.0.0.1" : name
  }

  /// One of a few words; `option` is what the error calls the setting.
  private static func choice<Value: RawRepresentable<String> & CaseIterable>(
    _ config: ConfigReader, _ key: String, option: String, default defaultValue: Value
  ) throws -> Value {
    guard let word = config.string(forKey: ConfigKey([key])) else { return defaultValue }
    guard let value = Value(rawValue: word) else {
      let known = Value.allCases.map(\.rawValue).joined(separator: ", ")
      throw SettingsError(description: "\(option) is \"\(word)\"; it must be one of \(known)")
    }
    return value
  }

  private static func limits(_ config: ConfigReader) throws -> WorkerLimits {
    let all = 1...Int.max
    let defaults = WorkerLimits()
    let picture = defaults.picture
    return WorkerLimits(
      picture: PictureLimits(
        maxPixels: UInt64(try int(config, "maxPixels", default: Int(picture.maxPixels), in: all)),
        maxHeldPixels: UInt64(try int(config, "maxHeldPixels", default: Int(picture.maxHeldPixels), in: all)),
        maxScans: UInt32(try int(config, "maxScans", default: Int(picture.maxScans), in: 1...1_000_000)),
        memory: try int(config, "pictureMemoryLimitMib", default: picture.memory >> 20, in: 1...1_048_576) << 20,
        spill: try spillDirectory(config, default: picture.spill)),
      maxMessageByteCount: try int(config, "maxMessageMib", default: defaults.maxMessageByteCount >> 20, in: 1...1023)
        << 20,
      maxWaitingPictures: try int(
        config, "maxWaitingPictures", default: defaults.maxWaitingPictures, in: 0...1_000_000),
      maxOpenUploads: try int(config, "maxOpenUploads", default: defaults.maxOpenUploads, in: 1...100_000),
      maxPicturesPerStream: try int(
        config, "maxPicturesPerStream", default: defaults.maxPicturesPerStream, in: 1...100_000))
  }

  private static func cache(_ config: ConfigReader) throws -> CacheLimits? {
    let mebibytes = 0...1_048_576
    let directory = config.string(forKey: "cacheDirectory").flatMap { $0.isEmpty ? nil : $0 }
    let limits = CacheLimits(
      memoryByteCount: try int(config, "cacheMemoryMib", default: 100, in: mebibytes) << 20,
      diskByteCount: try int(config, "cacheDiskMib", default: 500, in: mebibytes) << 20, directory: directory)
    return limits.memoryByteCount > 0 || directory != nil && limits.diskByteCount > 0 ? limits : nil
  }

  /// An empty path is none.
  private static func spillDirectory(
    _ config: ConfigReader, default defaultValue: SpillDirectory?
  ) throws -> SpillDirectory? {
    guard let path = config.string(forKey: "spillDirectory") else { return defaultValue }
    if path.isEmpty { return nil }
    guard let directory = SpillDirectory(path: path) else {
      throw SettingsError(description: "spillDirectory is \"\(path)\"; no file can be made there")
    }
    return directory
  }

  private static func bool(_ config: ConfigReader, _ key: String) throws -> Bool {
    let configKey = ConfigKey([key])
    do { return try config.requiredBool(forKey: configKey) } catch {
      guard config.string(forKey: configKey) == nil else {
        throw SettingsError(description: "\(key) must be true or false")
      }
      return false
    }
  }

  private static func int(
    _ config: ConfigReader, _ key: String, default defaultValue: Int, in range: ClosedRange<Int>
  ) throws -> Int {
    let configKey = ConfigKey([key])
    let value: Int
    do {
      // A value that is there but no number must not be taken for the default.
      value = try config.requiredInt(forKey: configKey)
    } catch {
      guard config.string(forKey: configKey) == nil else {
        throw SettingsError(description: "\(key) must be a whole number")
      }
      value = defaultValue
    }
    guard range.contains(value) else {
      throw SettingsError(
        description: "\(key) is \(value); it must be between \(range.lowerBound) and \(range.upperBound)")
    }
    return value
  }
}

/// A setting whose value can't be used.
struct SettingsError: Error, CustomStringConvertible {
  var description: String
}
