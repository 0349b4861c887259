package import CoreMetrics
internal import GRPCCore
internal import NIOHPACK
internal import Synchronization

/// Finds out who a call is from, before any of its messages is received.
///
/// Health checks are always allowed, those of the Open Inference Protocol included.
package final class Authenticator: Sendable {
  private let table: Mutex<IdentityTable?>
  private let metrics: any MetricsFactory

  /// Creates an authenticator.
  ///
  /// - Parameters:
  ///   - table: The known callers; `nil` to accept every caller, and to name those with a client certificate.
  ///   - metrics: The factory of the counter of refused calls.
  package init(_ table: IdentityTable?, metrics: any MetricsFactory) {
    self.table = Mutex(table)
    self.metrics = metrics
    guard table != nil else { return }
    // A series that begins with its first failures would hide them from rates.
    for reason in Failure.reasons { Self.counter(reason, metrics).increment(by: 0) }
  }

  private static func counter(_ reason: String, _ metrics: any MetricsFactory) -> Counter {
    Counter(label: "imageworker.authentication.failures", dimensions: [("reason", reason)], factory: metrics)
  }

  /// Uses another table for the calls that begin from now on.
  package func replace(with table: IdentityTable) { self.table.withLock { $0 = table } }

  /// Identifies the caller of a call, and removes its credentials from the call's headers.
  ///
  /// - Returns: The name of the caller; `nil` if it need not have one.
  /// - Throws: `RequestRefusal` if the caller is not known, or may not call the method.
  fileprivate func identify(
    _ headers: inout HPACKHeaders, path: String, _ certificateNames: [String]
  ) throws(RequestRefusal) -> String? {
    let credentials = headers["authorization"]
    headers.remove(name: "authorization")
    guard !path.hasPrefix(Self.healthPath), !Self.inferenceHealthPaths.contains(path) else { return nil }
    guard let table = table.withLock({ $0 }) else { return certificateNames.first }
    do throws(Failure) {
      let identity = try Self.identity(credentials, certificateNames, table)
      guard identity.mayReflect || !path.hasPrefix(Self.reflectionPath) else {
        throw .reflectionNotAllowed(identity.name)
      }
      return identity.name
    } catch {
      Self.counter(error.reason, metrics).increment()
      throw error.refusal
    }
  }

  private static let healthPath = "/grpc.health.v1.Health/"
  private static let inferenceHealthPaths = [
    "/inference.GRPCInferenceService/ServerLive", "/inference.GRPCInferenceService/ServerReady",
  ]
  private static let reflectionPath = "/grpc.reflection."

  private static func identity(
    _ credentials: [String], _ certificateNames: [String], _ table: IdentityTable
  ) throws(Failure) -> Identity {
    guard let value = credentials.first else {
      if let identity = table.identity(certificateNames: certificateNames) { return identity }
      throw certificateNames.isEmpty ? .missing : .unknownCertificate(certificateNames)
    }
    let parts = value.split(separator: " ")
    guard credentials.count == 1, parts.count == 2, parts[0].lowercased() == "bearer" else { throw .malformed }
    guard let identity = table.identity(token: String(parts[1])) else { throw .unknownToken }
    return identity
  }
}

/// The client of one connection; used only on the connection's event loop.
final class ConnectionCaller {
  private let authenticator: Authenticator
  /// Names in the verified client certificate; empty without one.
  var certificateNames: [String] = []

  init(_ authenticator: Authenticator) { self.authenticator = authenticator }

  /// See `Authenticator.identify`.
  func identify(_ headers: inout HPACKHeaders, path: String) throws(RequestRefusal) -> String? {
    try authenticator.identify(&headers, path: path, certificateNames)
  }
}

extension Authenticator {
  private enum Failure: Error {
    case missing
    case malformed
    case unknownToken
    case unknownCertificate([String])
    case reflectionNotAllowed(String)

    /// All values of the metric's label.
    static let reasons = [missing, malformed, unknownToken, unknownCertificate([]), reflectionNotAllowed("")]
      .map(\.reason)

    /// The value of the metric's label.
    var reason: String {
      switch self {
      case .missing: "missing"
      case .malformed: "malformed"
      case .unknownToken: "unknown_token"
      case .unknownCertificate: "unknown_certificate"
      case .reflectionNotAllowed: "reflection_not_allowed"
      }
    }

    var refusal: RequestRefusal {
      switch self {
      case .missing:
        .unauthenticated("send the metadata authorization with the value \"Bearer TOKEN\"")
      case .malformed:
        .unauthenticated("the metadata authorization must have one value, \"Bearer TOKEN\"")
      case .unknownToken:
        .unauthenticated("the bearer token in the metadata authorization is not known to this worker")
      case .unknownCertificate(let names):
        .unauthenticated(
          "the client certificate (\(names.joined(separator: ", "))) belongs to no identity of this worker, and there "
            + "is no metadata authorization")
      case .reflectionNotAllowed(let name):
        RequestRefusal(
          code: .permissionDenied, message: "the identity \(name) may not use reflection", reason: "PERMISSION_DENIED")
      }
    }
  }
}

extension RequestRefusal {
  fileprivate static func unauthenticated(_ message: String) -> Self {
    Self(code: .unauthenticated, message: message, reason: "UNAUTHENTICATED")
  }
}
