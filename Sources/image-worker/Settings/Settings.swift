internal import ArgumentParser
internal import ImageCodecs
internal import ImagePipeline
internal import Logging
internal import ResultCache
internal import SystemPackage
internal import WorkerOperations
internal import WorkerService
internal import WorkerTelemetry

/// The settings of `serve`.
///
/// An option wins over the environment, which wins over the file, which wins over the default. Each setting is declared
/// by the call that reads it: see `SettingSource`. The table in WorkerService's article Serving has a row for each.
struct Settings {
  var host: String
  var port: Int
  /// Whether the port was set; otherwise it is the default.
  var isPortSet: Bool
  /// Whether any free port is chosen if another process has the port.
  var choosesPort = false
  /// Whether other workers may listen on the same port.
  var sharesPort: Bool
  var reportsLoad: Bool
  /// Whether presets with tensor options are served as models of the Open Inference Protocol.
  var servesInference: Bool
  /// Whether results may be written into the shared memory of clients.
  var takesSharedMemory: Bool
  var security: SecuritySettings
  var threadCount: Int
  var memoryLimit: Int
  var drainTimeout: Duration
  /// From when on an image thread that has not returned is stuck; `nil` for never.
  var stuckThreadLimit: Duration?
  /// Limits on clients, which the worker completes with what they are charged and reported to.
  var connectionLimits = ConnectionLimits()
  /// Memory for images, messages and connections: what the memory cache leaves.
  var workMemoryLimit: Int { memoryLimit - (cache?.memoryByteCount ?? 0) }
  /// Calls that a connection may have under way; its client holds back others.
  ///
  /// Limits memory: a message is received before its image can be admitted.
  var maxConnectionCalls: Int
  /// Connections in all, and of one address.
  var maxConnections: Int
  var maxConnectionsPerPeer: Int
  var logLevel: Logger.Level
  var logFormat: LogFormat
  /// The address of the metrics for Prometheus; without a port, they are not served.
  var metricsHost: String
  var metricsPort: Int?
  /// Where the playground is served; no port, nowhere.
  var playgroundHost: String
  var playgroundPort: Int?
  /// Whether any free port is chosen for the playground if another process has the port.
  var choosesPlaygroundPort = false
  var limits: WorkerLimits
  /// The file of presets, when there is one.
  var presets: PresetSource?
  var takesOnlyPresets: Bool
  /// The directory of overlays, when there is one.
  var overlays: OverlaySource?
  /// The directory of additional fonts; `nil` if there is none.
  var fonts: String?
  /// The file with which faces are found, or `none`; `nil` for the default.
  var faceDetector: String?
  /// The cache of results; `nil` for none.
  var cache: CacheLimits?
  /// Where codecs run.
  var isolation: IsolationSettings

  /// The rows of all settings.
  static let rows: [SettingRow] = {
    var source = SettingSource()
    // Nothing is given, so nothing can be wrong.
    _ = try? Settings(&source)
    return source.rows
  }()

  /// - `options`: those of the command line.
  /// - `file`: the path of a YAML file, or `nil`.
  /// - `environment`: the process' variables.
  /// - Throws: `SettingsError` naming the setting as it was spelled, and what is accepted.
  static func read(options: OptionValues, file: String?, environment: [String: String]) throws -> Settings {
    var lookup = SettingLookup(rows: rows)
    if let file { try lookup.add(fileAt: file) }
    try lookup.add(environment: environment)
    lookup.add(options: options)
    var source = SettingSource(lookup.given)
    return try Settings(&source)
  }

  /// Every setting: its name in files, from which those of its option and its variable follow, and its row.
  private init(_ source: inout SettingSource) throws(SettingsError) {
    host = Self.address(source.text("host", default: "127.0.0.1", "address", "Set the address to listen on."))
    port = try source.integer(
      "port", in: 0...65535, default: 50051, unit: "port", "Set the port to listen on; 0 for any free one.")
    isPortSet = source.isGiven("port")
    sharesPort = try source.flag(
      "reusePort", "Let other workers of the same user listen on the same port, for restarts without a gap.")
    reportsLoad = try source.flag(
      "loadReports",
      "Report the worker's load to clients with each call, and at an interval to those that ask for it, for balancers "
        + "such as weighted_round_robin.")
    servesInference = try source.flag(
      "kserve",
      "Serve the presets with tensor options as models of the Open Inference Protocol (KServe v2), for clients such as "
        + "Triton's.")
    takesSharedMemory = try source.flag(
      "sharedMemory", "Write results into shared memory that clients on this host have created, if they ask for it.")
    security = try SecuritySettings(&source)
    threadCount =
      try source.optionalInteger(
        "threads", in: 1...1024, default: "the number of cores", unit: "images",
        "Set how many images are processed at the same time.") ?? SystemInfo.coreCount
    memoryLimit =
      (try source.optionalInteger(
        "memoryLimitMib", in: 32...1_048_576, default: "what the system or container has, at most 768", unit: "MiB",
        "Limit the memory of images, messages, connections and cached results together.")
        ?? SystemMemory.current.defaultLimit >> 20) << 20
    limits = try Self.limits(&source, memoryLimit: memoryLimit)
    isolation = try IsolationSettings(&source)
    connectionLimits.maxMessageByteCount = limits.maxMessageByteCount
    // Chosen by measurement: see Benchmarks/results/http2-windows.md.
    connectionLimits.windowByteCount =
      try source.integer(
        "windowKib", in: 64...65_536, default: 1024, unit: "KiB",
        "Set the HTTP/2 flow-control window of a connection and of each of its streams.") << 10
    connectionLimits.streamWindowByteCount =
      min(connectionLimits.windowByteCount, max(64 << 10, min(256 << 10, memoryLimit >> 12)))
    connectionLimits.maxFrameByteCount =
      try source.integer(
        "frameKib", in: 16...16_383, default: 256, unit: "KiB", "Limit the HTTP/2 frames that a client may send.")
      << 10
    maxConnectionCalls = try source.integer(
      "maxConnectionCalls", in: 1...1_000_000, default: 100, unit: "calls",
      "Limit the concurrent calls of a connection; its client delays further ones.")
    maxConnections =
      try source.optionalInteger(
        "maxConnections", in: 1...1_000_000, default: "one per 512 KiB of memory, at most 4096", unit: "connections",
        "Limit the open connections; further ones are closed at once.")
      ?? max(64, min(4096, memoryLimit >> 19))
    maxConnectionsPerPeer =
      try source.optionalInteger(
        "maxConnectionsPerPeer", in: 1...1_000_000, default: "half of all", unit: "connections",
        "Limit the open connections of one address; further ones are closed at once.")
      ?? max(1, maxConnections / 2)
    connectionLimits.time = try TimeLimits(&source, limits)
    connectionLimits.maxPings = try source.integer(
      "maxConnectionPings", in: 10...1_000_000, default: 200, unit: "frames",
      "Limit the PING frames that a client may send in 30 seconds beyond one per frame that it receives; more close "
        + "its connection.")
    connectionLimits.maxResets = try source.integer(
      "maxConnectionResets", in: 10...1_000_000, default: 1000, unit: "calls",
      "Limit the calls that a client may cancel within 0.1 seconds of their start, in 10 seconds beyond one per call that "
        + "it lets finish; further calls are refused, and ten times as many close its connection.")
    connectionLimits.maxSettings = try source.integer(
      "maxConnectionSettings", in: 10...190, default: 150, unit: "frames",
      "Limit the SETTINGS frames that a client may send in 30 seconds; more close its connection.")
    connectionLimits.maxMetadataByteCount =
      try source.integer(
        "metadataKib", in: 4...64, default: 16, unit: "KiB",
        "Limit the metadata of a call; one with more is refused with RESOURCE_EXHAUSTED.") << 10
    connectionLimits.backlog = Int32(
      try source.integer(
        "listenBacklog", in: 1...65_535, default: 4096, unit: "connections",
        "Limit the connections that wait to be accepted; the kernel may allow fewer."))
    drainTimeout = .seconds(
      try source.integer(
        "drainTimeoutSeconds", in: 0...3600, default: 30, unit: "seconds",
        "Limit the time that work in flight may take to finish after SIGTERM."))
    stuckThreadLimit = try Self.timeLimit(
      &source, "stuckThreadSeconds", default: 180,
      "Report NOT_SERVING while an image thread spends more than this time in one step; 0 for never.")
    logLevel = try source.choice("logLevel", default: Logger.Level.info, "Set the lowest level that is logged.")
    logFormat = try source.choice(
      "logFormat", default: WorkerLogHandler.fittingFormat, called: "text at a terminal, else json",
      "Set the format of log lines.")
    metricsPort = try source.optionalInteger(
      "metricsPort", in: 0...65535, default: "none", unit: "port",
      "Expose metrics to Prometheus as GET /metrics on this port; 0 for any free one.")
    metricsHost = Self.address(
      source.text("metricsHost", default: "127.0.0.1", "address", "Set the address of --metrics-port."))
    playgroundPort = try source.optionalInteger(
      "playgroundPort", in: 0...65535, default: "none", unit: "port",
      "Serve the page to tune presets on this port; 0 for any free one.")
    playgroundHost = Self.address(
      source.text("playgroundHost", default: "127.0.0.1", "address", "Set the address of --playground-port."))
    cache = try Self.cache(&source, memoryLimit: memoryLimit)
    presets = source.text(
      "presets", default: nil, "file", completion: .file(),
      "Read presets from a YAML file, in addition to the built-in ones, which it may override."
    )
    .map { PresetSource(path: FilePath($0)) }
    overlays = source.text(
      "overlays", default: nil, "directory", completion: .directory,
      "Read images that overlays name from this directory; the names are those of the files, without extension."
    )
    .map { OverlaySource(path: FilePath($0)) }
    fonts = try FontDirectory.checked(
      source.text(
        "fonts", default: nil, "directory", completion: .directory,
        "Draw texts with the fonts of this directory, in addition to those of the system. Read when the worker starts.")
    )
    faceDetector = source.text(
      "faceDetector", default: nil, called: FaceDetectorFile.defaultText, "file", completion: .file(),
      FaceDetectorFile.help + " Read when the worker starts."
    )
    takesOnlyPresets = try source.flag(
      "onlyPresets", "Refuse requests that set configuration fields; allow only presets.")
  }

  /// The address of the gRPC listener.
  var listenAddress: ListenAddress {
    security.unixSocket ?? .tcp(host: host, port: port)
  }

  /// An address to listen on.
  private static func address(_ given: String?) -> String {
    // Of a name only the first address is listened on, which for this one may be ::1, where fewer clients look.
    guard let given, given != "localhost" else { return "127.0.0.1" }
    return given
  }

  private static func limits(
    _ source: inout SettingSource, memoryLimit: Int
  ) throws(SettingsError) -> WorkerLimits {
    var limits = WorkerLimits.defaults
    limits.image = try imageLimits(&source, limits.image, memoryLimit: memoryLimit)
    limits.maxMessageByteCount =
      try source.integer(
        "maxMessageMib", in: 1...1023, default: limits.maxMessageByteCount >> 20, unit: "MiB",
        "Limit the image bytes in one request message.") << 20
    limits.maxWaitingImages = try source.integer(
      "maxWaitingImages", in: 0...1_000_000, default: limits.maxWaitingImages, unit: "images",
      "Limit the images that wait for a thread or memory; further ones are refused with RESOURCE_EXHAUSTED.")
    limits.maxQueueTime = try timeLimit(
      &source, "maxQueueSeconds", default: 30,
      "Refuse an image with RESOURCE_EXHAUSTED if the images before it will take longer than this; 0 for never.")
    limits.maxOpenUploads = try source.integer(
      "maxOpenUploads", in: 1...100_000, default: limits.maxOpenUploads, unit: "uploads",
      "Limit the chunked uploads that are open on one BatchProcess stream; further ones are refused with "
        + "RESOURCE_EXHAUSTED.")
    limits.maxImagesPerStream = try source.integer(
      "maxImagesPerStream", in: 1...100_000, default: limits.maxImagesPerStream, unit: "images",
      "Limit the images sent whole on one BatchProcess stream that are processed at the same time; the stream is "
        + "not read meanwhile.")
    limits.uploadTimeout = try timeLimit(
      &source, "uploadTimeoutSeconds", default: 30,
      "End an upload or message that falls this far behind --min-bytes-per-second, with DEADLINE_EXCEEDED; 0 for "
        + "never.")
    limits.minBytesPerSecond = try source.integer(
      "minBytesPerSecond", in: 0...1_000_000_000, default: limits.minBytesPerSecond, unit: "bytes",
      "Require this rate of uploads and of reading results; 0 for any progress.")
    return limits
  }

  /// A time, of which 0 means none.
  static func timeLimit(
    _ source: inout SettingSource, _ key: String, default defaultValue: Int, _ help: String
  ) throws(SettingsError) -> Duration? {
    let seconds = try source.integer(key, in: 0...86_400, default: defaultValue, unit: "seconds", help)
    return seconds == 0 ? nil : .seconds(seconds)
  }

  private static func imageLimits(
    _ source: inout SettingSource, _ defaults: ImageLimits, memoryLimit: Int
  ) throws(SettingsError) -> ImageLimits {
    var limits = ImageLimits(
      maxPixels: UInt64(
        try source.integer(
          "maxPixels", in: 1...Int.max, default: Int(defaults.maxPixels), unit: "pixels",
          "Limit the size of an image that is decoded strip by strip.")),
      maxBufferedPixels: UInt64(
        try source.integer(
          "maxBufferedPixels", in: 1...Int.max, default: Int(defaults.maxBufferedPixels), unit: "pixels",
          "Limit the size of an image that must be buffered whole.")),
      maxScans: UInt32(
        try source.integer(
          "maxScans", in: 1...1_000_000, default: Int(defaults.maxScans), unit: "scans",
          "Limit the scans of a JPEG, each of which costs a pass over the image.")),
      maxAnimationFrames: UInt32(
        try source.integer(
          "maxAnimationFrames", in: 1...1_000_000, default: Int(defaults.maxAnimationFrames), unit: "frames",
          "Limit the frames of an animation; one with more is refused unless the request takes fewer.")),
      maxAnimationPixels: UInt64(
        try source.integer(
          "maxAnimationPixels", in: 1...Int.max, default: Int(defaults.maxAnimationPixels), unit: "pixels",
          "Limit the pixels of all frames of an animation together, each counted as the whole canvas.")),
      maxWorkPixels: UInt64(
        try source.integer(
          "maxWorkPixels", in: 1...Int.max, default: Int(defaults.maxWorkPixels), unit: "pixels",
          "Limit the pixels of all results of an image, each counted for encoding, for scaling and for each filter pass."
        )),
      maxCPUTime: try timeLimit(
        &source, "maxCpuSecondsPerImage", default: 120,
        "Limit the CPU time of one image and all its results, checked between strips; 0 for none."))
    let given = try source.optionalInteger(
      "imageMemoryLimitMib", in: 1...1_048_576,
      default: "half of --memory-limit-mib, at most 384; of a HEIC or AVIF five sixths, at most 640", unit: "MiB",
      "Limit the memory of one image.")
    limits.memory = given.map { $0 << 20 } ?? min(limits.memory, memoryLimit / 2)
    limits.frameMemory = given.map { $0 << 20 } ?? min(limits.frameMemory, memoryLimit / 6 * 5)
    limits.spill = try spillDirectory(&source)
    return limits
  }

  private static func spillDirectory(_ source: inout SettingSource) throws(SettingsError) -> SpillDirectory? {
    let path = source.text(
      "spillDirectory", default: "/var/tmp", "directory", completion: .directory,
      "Spool data that does not fit in memory to this directory; an empty name for none.")
    guard let path else { return nil }
    if let directory = SpillDirectory(path: path) { return directory }
    if !source.isGiven("spillDirectory") { return nil }
    throw source.error("spillDirectory", "it must be a directory in which the worker can create files")
  }

  private static func cache(
    _ source: inout SettingSource, memoryLimit: Int
  ) throws(SettingsError) -> CacheLimits? {
    let limits = CacheLimits(
      memoryByteCount: try source.optionalInteger(
        "cacheMemoryMib", in: 0...1_048_576, default: "an eighth of --memory-limit-mib, at most 100", unit: "MiB",
        "Limit the memory cache, a part of --memory-limit-mib and at most half of it; 0 disables the memory cache."
      ).map { $0 << 20 } ?? min(100 << 20, memoryLimit / 8),
      diskByteCount: try source.integer(
        "cacheDiskMib", in: 0...1_048_576, default: 500, unit: "MiB",
        "Limit the disk space of cached results; 0 disables the disk cache.")
        << 20,
      directory: source.text(
        "cacheDirectory", default: nil, "directory", completion: .directory,
        "Also cache results in files in this directory, which belongs to the worker's user and nobody else may write."))
    guard limits.memoryByteCount <= memoryLimit / 2 else {
      throw source.error("cacheMemoryMib", "it must be at most half of --memory-limit-mib, \(memoryLimit >> 21)")
    }
    return limits.memoryByteCount > 0 || limits.directory != nil && limits.diskByteCount > 0 ? limits : nil
  }
}
