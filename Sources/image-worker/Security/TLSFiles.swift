internal import SystemPackage
internal import WorkerOperations

/// The PEM files of a listener with TLS.
struct TLSFiles {
  let certificate: FilePath
  let key: FilePath
  /// `nil` if no client certificates are required.
  let clientCA: FilePath?

  /// Reads the files.
  ///
  /// - Throws: `SettingsError` naming the file that cannot be read.
  func read(isReload: Bool = false) throws(SettingsError) -> TLSMaterial {
    TLSMaterial(
      certificate: try FileSystem.bytes(of: certificate, option: "--tls-certificate", isReload: isReload),
      key: try FileSystem.bytes(of: key, option: "--tls-key", isReload: isReload),
      clientCA: try clientCA.map { path throws(SettingsError) in
        try FileSystem.bytes(of: path, option: "--tls-client-ca", isReload: isReload)
      })
  }

  /// Calls `body`, and names the file in its error.
  func naming<Result>(_ body: () throws(TLSMaterialError) -> Result) throws(SettingsError) -> Result {
    do { return try body() } catch {
      let name =
        switch error.file {
        case .certificate: "--tls-certificate \(certificate)"
        case .key: "--tls-key \(key)"
        case .clientCA: "--tls-client-ca \(clientCA?.string ?? "")"
        }
      throw SettingsError(description: "\(name) \(error.problem)")
    }
  }
}
