import Testing

@testable import WorkerTelemetry

@Suite("TelemetryConfiguration")
struct TelemetryConfigurationTests {
  private func read(_ environment: [String: String]) -> TelemetryConfiguration {
    TelemetryConfiguration(environment: environment)
  }

  @Test("exports nothing without an endpoint")
  func nothing() {
    let configuration = read(["OTEL_SERVICE_NAME": "x", "OTEL_TRACES_EXPORTER": "otlp"])
    #expect(configuration.exports.isEmpty && configuration.warnings.isEmpty)
  }

  @Test("sends every signal to the common endpoint, unless a signal has its own or none")
  func endpoints() throws {
    let configuration = read([
      "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4000", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://[::1]/x",
      "OTEL_EXPORTER_OTLP_HEADERS": "a=1,B=x%20y", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "c=3",
      "OTEL_EXPORTER_OTLP_TIMEOUT": "500", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "700",
      "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": "none",
      "OTEL_EXPORTER_OTLP_CERTIFICATE": "/a.pem", "OTEL_LOGS_EXPORTER": "none",
    ])
    #expect(configuration.warnings.isEmpty && configuration.exports[.logs] == nil)
    let traces = try #require(configuration.exports[.traces])
    #expect(traces.endpoint.host == "::1" && traces.endpoint.port == 4317)
    #expect(traces.endpoint.tls?.trustedCertificate == "/a.pem" && !traces.endpoint.usesGzip)
    #expect(traces.headers.map(\.key) == ["c"] && traces.timeout == .milliseconds(700))
    let metrics = try #require(configuration.exports[.metrics])
    #expect(metrics.endpoint.host == "collector" && metrics.endpoint.port == 4000 && metrics.endpoint.tls == nil)
    #expect(metrics.headers.map(\.key) == ["a", "b"] && metrics.headers.map(\.value) == ["1", "x y"])
    #expect(metrics.endpoint.usesGzip && metrics.timeout == .milliseconds(500))
  }

  @Test("exports nothing when it is disabled")
  func disabled() {
    for value in ["true", "TRUE"] {
      let configuration = read(["OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_SDK_DISABLED": value])
      #expect(configuration.isDisabled && configuration.exports.isEmpty)
    }
    #expect(!read(["OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_SDK_DISABLED": "yes"]).exports.isEmpty)
  }

  @Test(
    "reads endpoints with and without a scheme",
    arguments: [
      ("http://a", "a", 4317, false), ("HTTPS://a:1/p?q#f", "a", 1, true), ("a", "a", 4317, true),
      ("a:4318", "a", 4318, true), ("http://[fe80::1]:9", "fe80::1", 9, false), ("127.0.0.1:5", "127.0.0.1", 5, true),
    ])
  func endpoint(text: String, host: String, port: Int, isSecure: Bool) throws {
    let endpoint = try OTLPEndpoint(text)
    #expect(endpoint.host == host && endpoint.port == port && (endpoint.tls != nil) == isSecure)
    if !text.contains("://") { #expect(try OTLPEndpoint(text, isInsecure: true).tls == nil) }
  }

  @Test(
    "warns of a value without meaning by the name of its variable, and goes on without",
    arguments: [
      ("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://a"), ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:port"),
      ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"), ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://u:p@a"),
      ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://::1"), ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "soon"),
      ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"), ("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "zstd"),
      ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a"), ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "key-bin=x"),
      ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a=%0a"), ("OTEL_BSP_MAX_QUEUE_SIZE", "0"),
      ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "3000"), ("OTEL_BSP_SCHEDULE_DELAY", "-1"), ("OTEL_PROPAGATORS", "b3"),
      ("OTEL_TRACES_EXPORTER", "zipkin"), ("OTEL_SDK_DISABLED", "maybe"), ("OTEL_METRIC_EXPORT_INTERVAL", "x"),
      ("OTEL_RESOURCE_ATTRIBUTES", "a=1,b"), ("OTEL_TRACES_SAMPLER", "all"),
    ])
  func warnings(variable: String, value: String) {
    var environment = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector"]
    environment[variable] = value
    let configuration = read(environment)
    #expect(!configuration.warnings.isEmpty && configuration.warnings.allSatisfy { $0.contains(variable) })
    #expect(configuration.exports[.traces]?.endpoint.host == "collector")
  }

  @Test("never repeats a header's value, which may be a secret")
  func secrets() {
    let configuration = read([
      "OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_EXPORTER_OTLP_HEADERS": "hunter2,x-bin=hunter2,a=hunter2%0a",
    ])
    #expect(configuration.warnings.count >= 2)
    #expect(configuration.warnings.allSatisfy { !$0.contains("hunter2") })
  }

  @Test("describes the process; the operator's values take precedence, especially the service name")
  func resource() {
    func resource(_ environment: [String: String]) -> [String: String] {
      let all = TelemetryConfiguration(environment: environment, processAttributes: [("host.name", "h")]).resource
      return Dictionary(uniqueKeysWithValues: all.map { ($0.key, $0.value) })
    }
    #expect(resource([:])["service.name"] == "image-worker" && resource([:])["host.name"] == "h")
    #expect(resource([:])["service.version"] == WorkerVersion.current)
    let given = ["OTEL_RESOURCE_ATTRIBUTES": "service.name=a,host.name=b%2Cc, k = v "]
    #expect(resource(given)["service.name"] == "a" && resource(given)["host.name"] == "b,c")
    #expect(resource(given)["k"] == "v" && resource(given)["telemetry.sdk.language"] == "swift")
    #expect(resource(given.merging(["OTEL_SERVICE_NAME": "n"]) { $1 })["service.name"] == "n")
  }
}
