/// Telemetry settings from the standard OpenTelemetry environment variables.
///
/// As the OpenTelemetry specification requires, an invalid value causes a warning and is ignored: telemetry never
/// prevents the worker from starting. A signal whose endpoint is unusable is not exported.
package struct TelemetryConfiguration: Sendable {
  /// A kind of telemetry.
  package enum Signal: String, Sendable, CaseIterable {
    case traces, metrics, logs

    /// The names of the variables with this end: that of the signal first, then the general one.
    fileprivate func variables(_ suffix: String) -> [String] {
      ["OTEL_EXPORTER_OTLP_\(rawValue.uppercased())_\(suffix)", "OTEL_EXPORTER_OTLP_\(suffix)"]
    }
  }

  /// The export settings of one signal.
  struct Export: Sendable {
    var endpoint: OTLPEndpoint
    /// Headers sent with each export; keys are lower case.
    var headers: [(key: String, value: String)]
    /// Time limit for one export, including its retries.
    var timeout: Duration
  }

  /// The batching settings for spans or log records.
  struct Batching: Sendable {
    var queueCapacity: Int
    var batchSize: Int
    var delay: Duration
  }

  /// The value of `OTEL_SDK_DISABLED`.
  package private(set) var isDisabled = false
  /// Resource attributes of this process, service name first.
  private(set) var resource: [(key: String, value: String)] = []
  private(set) var sampler = Sampler.parentBased(root: .alwaysOn)
  private(set) var readsTraceContext = true
  /// Export settings by signal; a signal without an entry is not exported.
  private(set) var exports: [Signal: Export] = [:]
  private(set) var spanBatching: Batching
  private(set) var logBatching: Batching
  private(set) var metricInterval: Duration = .seconds(60)
  /// Warnings about ignored values, one sentence each.
  package private(set) var warnings: [String] = []

  /// Reads the configuration.
  ///
  /// - Parameters:
  ///   - environment: The environment variables of the process by name.
  ///   - processAttributes: Resource attributes that the process itself provides.
  package init(environment: [String: String], processAttributes: [(key: String, value: String)] = []) {
    var reader = VariableReader(variables: environment)
    spanBatching = Batching(reader: &reader, prefix: "OTEL_BSP", delay: 5000)
    logBatching = Batching(reader: &reader, prefix: "OTEL_BLRP", delay: 1000)
    isDisabled = reader.bool("OTEL_SDK_DISABLED")
    resource = Self.resource(&reader, processAttributes)
    sampler = Sampler(
      name: reader.string("OTEL_TRACES_SAMPLER"), argument: reader.string("OTEL_TRACES_SAMPLER_ARG")
    ) { reader.warn($0) }
    readsTraceContext = Self.readsTraceContext(&reader)
    metricInterval = reader.milliseconds(["OTEL_METRIC_EXPORT_INTERVAL"], default: 60_000)
    if !isDisabled {
      for signal in Signal.allCases { exports[signal] = Self.export(signal, &reader) }
    }
    warnings = reader.warnings
  }

  private static func resource(
    _ reader: inout VariableReader, _ processAttributes: [(key: String, value: String)]
  ) -> [(key: String, value: String)] {
    let given = reader.pairs("OTEL_RESOURCE_ATTRIBUTES")
    let name = reader.string("OTEL_SERVICE_NAME") ?? given.last { $0.key == "service.name" }?.value ?? "image-worker"
    var all = [(key: "service.name", value: name)]
    let sdk = [
      (key: "service.version", value: WorkerVersion.current),
      (key: "telemetry.sdk.name", value: "image-worker"), (key: "telemetry.sdk.language", value: "swift"),
      (key: "telemetry.sdk.version", value: WorkerVersion.current),
    ]
    // Attributes from the environment take precedence.
    for pair in given.reversed() + processAttributes + sdk where !all.contains(where: { $0.key == pair.key }) {
      all.append(pair)
    }
    return all
  }

  private static func readsTraceContext(_ reader: inout VariableReader) -> Bool {
    guard let names = reader.string("OTEL_PROPAGATORS")?.split(separator: ",").map(\.trimmed) else { return true }
    // Nothing in the worker reads baggage.
    for name in names where !["tracecontext", "baggage", "none"].contains(name) {
      reader.warn(
        "OTEL_PROPAGATORS contains \"\(name)\", which is unknown and ignored; use tracecontext, baggage or none")
    }
    return names.contains("tracecontext")
  }

  private static func export(_ signal: Signal, _ reader: inout VariableReader) -> Export? {
    let exporter = "OTEL_\(signal.rawValue.uppercased())_EXPORTER"
    switch reader.string(exporter) {
    case nil, "otlp": break
    case "none": return nil
    case let name?:
      reader.warn("\(exporter) is \"\(name)\"; it must be otlp or none; using otlp")
    }
    guard let (name, address) = reader.first(signal.variables("ENDPOINT")) else { return nil }
    if let (name, value) = reader.first(signal.variables("PROTOCOL")), value != "grpc" {
      reader.warn("\(name) is \"\(value)\"; it must be grpc; using grpc")
    }
    do {
      var endpoint = try OTLPEndpoint(
        address, isInsecure: reader.first(signal.variables("INSECURE"))?.value.lowercased() == "true",
        tls: .init(
          trustedCertificate: reader.first(signal.variables("CERTIFICATE"))?.value,
          clientCertificate: reader.first(signal.variables("CLIENT_CERTIFICATE"))?.value,
          clientKey: reader.first(signal.variables("CLIENT_KEY"))?.value))
      endpoint.usesGzip = usesGzip(signal, &reader)
      return Export(
        endpoint: endpoint, headers: reader.headers(signal.variables("HEADERS")),
        timeout: reader.milliseconds(signal.variables("TIMEOUT"), default: 10_000))
    } catch {
      reader.warn("\(name) \(error); \(signal.rawValue) are not exported")
      return nil
    }
  }

  private static func usesGzip(_ signal: Signal, _ reader: inout VariableReader) -> Bool {
    guard let (name, value) = reader.first(signal.variables("COMPRESSION")) else { return false }
    if value != "gzip", value != "none" {
      reader.warn("\(name) is \"\(value)\"; it must be gzip or none; using none")
    }
    return value == "gzip"
  }
}

extension TelemetryConfiguration.Batching {
  /// Reads the settings with this prefix; `delay` is the default delay in milliseconds.
  fileprivate init(reader: inout VariableReader, prefix: String, delay: Int) {
    let capacity = reader.int(["\(prefix)_MAX_QUEUE_SIZE"], default: 2048, in: 1...1_000_000)
    let batchSize = reader.int(["\(prefix)_MAX_EXPORT_BATCH_SIZE"], default: min(512, capacity), in: 1...capacity)
    self.init(
      queueCapacity: capacity, batchSize: batchSize,
      delay: reader.milliseconds(["\(prefix)_SCHEDULE_DELAY"], default: delay))
  }
}
