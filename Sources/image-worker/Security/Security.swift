internal import ImagePipeline
internal import Logging
internal import Synchronization
internal import SystemPackage
internal import WorkerOperations
internal import WorkerService
internal import WorkerTelemetry

/// The TLS and the identities of a running worker, which follow their files.
final class Security: Sendable {
  private let settings: SecuritySettings
  private let logger: Logger
  private let metrics: MetricRegistry
  /// The security of the gRPC listener; `nil` for plaintext.
  let listener: TLSSecurity?
  /// The security of the metrics listener; `nil` for plaintext.
  let metricsListener: TLSSecurity?
  /// Identifies callers; `nil` if every caller is served alike.
  let authenticator: Authenticator?
  /// The accounts of callers; `nil` if callers have no identities.
  let callers: CallerAccounts?
  private let seenMaterial: Seen<TLSMaterial>
  private let seenIdentities: Seen<String>

  /// Reads the files.
  ///
  /// - Parameters:
  ///   - settings: The settings that name the files.
  ///   - presets: The presets that identities may be restricted to.
  ///   - metrics: The registry for handshakes and callers.
  ///   - logger: The logger that reports what is read again.
  /// - Throws: `SettingsError` naming the file that cannot be used.
  init(
    _ settings: SecuritySettings, presets: PresetCatalog, metrics: MetricRegistry, logger: Logger
  ) throws(SettingsError) {
    self.settings = settings
    self.logger = logger
    self.metrics = metrics
    let material = try settings.tls?.read()
    func tls(_ name: ApplicationProtocol) throws(SettingsError) -> TLSSecurity? {
      guard let files = settings.tls, let material else { return nil }
      return try files.naming { () throws(TLSMaterialError) in
        try TLSSecurity(
          material, protocol: name, handshakeTimeout: settings.handshakeTimeout, logger: logger, metrics: metrics)
      }
    }
    listener = try tls(.http2)
    metricsListener = try settings.hasSecureMetrics ? tls(.http1) : nil
    let text = try settings.identities.map { path throws(SettingsError) in
      try FileSystem.text(of: path, option: "--identities")
    }
    let file = try text.map { text throws(SettingsError) in
      try Self.identities(text, settings, presetNames: Set(presets.presets.map(\.name)))
    }
    callers = file.map { CallerAccounts($0.policies, metrics: metrics) }
    authenticator =
      file != nil || listener?.requiresClientCertificates == true
      ? Authenticator(file.map { IdentityTable($0.identities) }, metrics: metrics) : nil
    (seenMaterial, seenIdentities) = (Seen(material), Seen(text))
  }

  /// Starts to report when the certificate expires.
  func observe() {
    guard let listener else { return }
    metrics.observe("imageworker.tls.certificate.expiry") { Double(listener.expiry) }
  }

  // MARK: Changed files

  /// Reads the files again and uses what has changed for new connections and calls.
  ///
  /// Files that cannot be used leave everything as it is.
  func reload() {
    do throws(SettingsError) { try reloadTLS() } catch {
      logger.error("the TLS files cannot be used; the previous ones stay in effect", metadata: ["error": "\(error)"])
    }
    do throws(SettingsError) { try reloadIdentities() } catch {
      logger.error("the identities cannot be used; the previous ones stay in effect", metadata: ["error": "\(error)"])
    }
  }

  private func reloadTLS() throws(SettingsError) {
    guard let tls = settings.tls, let listener else { return }
    do throws(SettingsError) {
      let material = try tls.read(isReload: true)
      guard seenMaterial.isNew(material) else { return }
      try tls.naming { () throws(TLSMaterialError) in
        try listener.replace(with: material)
        try metricsListener?.replace(with: material)
      }
      seenMaterial.note(material)
    } catch {
      // It is tried again, as a certificate may be refused that is valid a little later.
      guard seenMaterial.isNew(failure: error.description) else { return }
      throw error
    }
    logger.notice("TLS files reloaded", metadata: ["certificate": "\(tls.certificate)"])
  }

  private func reloadIdentities() throws(SettingsError) {
    guard let path = settings.identities, let callers, let authenticator else { return }
    let file: IdentityFile
    do throws(SettingsError) {
      let text = try FileSystem.text(of: path, option: "--identities", isReload: true)
      guard seenIdentities.isNew(text) else { return }
      // Presets are not checked: their file may be about to be read again, too.
      file = try Self.identities(text, settings, presetNames: nil)
      seenIdentities.note(text)
    } catch {
      guard seenIdentities.isNew(failure: error.description) else { return }
      throw error
    }
    // In this order, so that nobody is admitted whose policy is not known yet.
    callers.replace(with: file.policies)
    authenticator.replace(with: IdentityTable(file.identities))
    logger.notice("identities reloaded", metadata: ["file": "\(path)", "identities": "\(file.identities.count)"])
  }

  private static func identities(
    _ text: String, _ settings: SecuritySettings, presetNames: Set<String>?
  ) throws(SettingsError) -> IdentityFile {
    do throws(IdentityFileError) {
      let file = try IdentityFile(yaml: text)
      try file.check(presetNames: presetNames, hasClientCA: settings.tls?.clientCA != nil)
      return file
    } catch {
      throw SettingsError(description: "--identities \(settings.identities?.string ?? ""): \(error)")
    }
  }
}

/// The content that a file, or files that belong together, had when they were last used, and why they could not be used
/// since, so that each change and each failure is logged once.
///
/// Contents are compared instead of times, because files that are replaced together are seen in any state between.
private final class Seen<Content: Equatable & Sendable>: Sendable {
  private let state: Mutex<(content: Content?, failure: String)>

  init(_ content: Content?) { state = Mutex((content, "")) }

  func isNew(_ content: Content) -> Bool {
    state.withLock { state in
      if state.content == content { state.failure = "" }
      return state.content != content
    }
  }

  func note(_ content: Content) { state.withLock { $0 = (content, "") } }

  func isNew(failure: String) -> Bool {
    state.withLock { state in
      defer { state.failure = failure }
      return state.failure != failure
    }
  }
}
