/// The OpenTelemetry semantic conventions for the names of spans, attributes and metrics.
///
/// The conventions for RPC are a release candidate in this version: `rpc.system.name`, a fully-qualified `rpc.method`,
/// a string `rpc.response.status_code`, `error.type`, `rpc.server.call.duration` in seconds.
package enum SemanticConventions {
  /// Version of the conventions.
  package static let version = "1.44.0"
  /// OTLP schema URL of the version.
  static let schemaURL = "https://opentelemetry.io/schemas/\(version)"
}
