/// The OpenTelemetry semantic conventions that names of spans, attributes and metrics follow.
///
/// Those for RPC are a release candidate in this version: `rpc.system.name`, a fully-qualified `rpc.method`, a string
/// `rpc.response.status_code`, `error.type`, `rpc.server.call.duration` in seconds.
package enum SemanticConventions {
  package static let version = "1.44.0"
  /// What OTLP calls the schema URL.
  static let schemaURL = "https://opentelemetry.io/schemas/\(version)"
}
