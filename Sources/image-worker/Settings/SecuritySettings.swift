internal import ArgumentParser
internal import Logging
internal import SystemPackage
internal import WorkerOperations

/// The settings of who may connect to the worker, and how.
struct SecuritySettings {
  /// The Unix domain socket to listen on instead of an address.
  var unixSocket: ListenAddress?
  /// Whether other machines may connect without TLS and without tokens.
  var isInsecureAllowed: Bool
  /// The files of TLS; `nil` for plaintext.
  var tls: TLSFiles?
  var handshakeTimeout: Duration
  /// The file of the callers that the worker knows; `nil` to serve every caller.
  var identities: FilePath?
  /// How often the files of TLS and identities are read again.
  var reloadInterval: Duration
  /// Whether metrics are served over TLS.
  var hasSecureMetrics: Bool

  init(_ source: inout SettingSource) throws(SettingsError) {
    let path = source.text(
      "unixSocket", default: nil, "path", completion: .file(),
      "Listen on a Unix domain socket instead of --host and --port.")
    let permissions = try source.permissions(
      "unixSocketPermissions", default: 0o660, "Set the permissions of --unix-socket.")
    unixSocket = path.map { .unix(path: $0, permissions: permissions) }
    isInsecureAllowed = try source.flag(
      "insecure",
      "Allow an address that other machines can reach without TLS and without identities.")
    tls = try Self.tls(&source)
    handshakeTimeout = .seconds(
      try source.integer(
        "tlsHandshakeSeconds", in: 1...3600, default: 10, unit: "seconds",
        "Close connections that have not completed the TLS handshake after this time."))
    identities = try source.securityFile(
      "identities", "Serve only callers with a bearer token or client certificate in this YAML file.")
    reloadInterval = .seconds(
      try source.integer(
        "reloadSeconds", in: 1...86_400, default: 5, unit: "seconds",
        "Set how often the files of TLS and --identities are checked for changes."))
    hasSecureMetrics = try source.flag(
      "metricsTls", "Serve metrics over TLS, with the files of --tls-certificate, --tls-key and --tls-client-ca.")
    guard !hasSecureMetrics || tls != nil else {
      throw source.error("metricsTls", "it needs --tls-certificate and --tls-key")
    }
  }

  private static func tls(_ source: inout SettingSource) throws(SettingsError) -> TLSFiles? {
    let certificate = try source.securityFile(
      "tlsCertificate", "Serve over TLS 1.3 with the certificate and its intermediate certificates in this PEM file.")
    let key = try source.securityFile("tlsKey", "Read the key of --tls-certificate from this PEM file.")
    let clientCA = try source.securityFile(
      "tlsClientCa", "Require client certificates that an authority in this PEM file has issued (mutual TLS).")
    if let certificate, let key {
      return TLSFiles(certificate: certificate, key: key, clientCA: clientCA)
    }
    if certificate != nil { throw source.error("tlsCertificate", "it needs --tls-key") }
    if key != nil { throw source.error("tlsKey", "it needs --tls-certificate") }
    if clientCA != nil { throw source.error("tlsClientCa", "it needs --tls-certificate and --tls-key") }
    return nil
  }

  /// Whether the worker may listen on an address that other machines can reach.
  var allowsOtherMachines: Bool { isProtected || isInsecureAllowed }

  /// Whether a call needs more than a connection, and there are files that can change.
  var isProtected: Bool { tls != nil || identities != nil }

  /// The protection of the listener, for the log.
  var summary: String {
    let transport = tls == nil ? "plaintext" : tls?.clientCA == nil ? "TLS" : "mutual TLS"
    return identities == nil ? transport : "\(transport), identities"
  }

  /// Checks that nobody can reach an unprotected worker by accident.
  ///
  /// - Throws: `SettingsError` if other machines can reach `address` without TLS and without tokens, and that is not
  ///   allowed.
  func check(_ address: ListenAddress) throws(SettingsError) {
    guard !allowsOtherMachines, !address.isLocal else { return }
    throw SettingsError(
      description: """
        \(address) can be reached from other machines, without TLS and without identities. Set --tls-certificate \
        and --tls-key, or --identities, or allow it with --insecure
        """)
  }

  /// Logs what an operator should know about a listener that other machines can reach.
  func warn(of address: ListenAddress, _ logger: Logger) {
    guard tls == nil, !address.isLocal else { return }
    let message: Logger.Message =
      identities == nil
      ? "--insecure: every machine that can reach this address may use the worker, and images are sent in plaintext"
      : "tokens and images are sent in plaintext to this address; set --tls-certificate, or use a proxy with TLS"
    logger.warning(message, metadata: ["address": "\(address)"])
  }
}

extension SettingSource {
  /// The permissions of a file, in octal digits.
  mutating func permissions(
    _ key: String, default defaultValue: UInt32, _ help: String
  ) throws(SettingsError) -> UInt32 {
    let defaultText = String(defaultValue, radix: 8)
    guard let text = text(key, default: defaultText, "octal digits, as in chmod", help) else { return defaultValue }
    guard let value = UInt32(text, radix: 8), value <= 0o777 else {
      throw error(key, "it must be up to three octal digits, as in \(defaultText)")
    }
    return value
  }
}
