internal import SystemPackage
internal import WorkerOperations

/// The PEM files of a listener with TLS.
struct TLSFiles {
  private static let maxByteCount = 1 << 20

  let certificate: FilePath
  let key: FilePath
  /// `nil` if no client certificates are required.
  let clientCA: FilePath?

  /// Reads the files.
  ///
  /// - Throws: `SettingsError` naming the file that cannot be read.
  func read() throws(SettingsError) -> TLSMaterial {
    TLSMaterial(
      certificate: try Self.bytes(certificate, option: "--tls-certificate"),
      key: try Self.bytes(key, option: "--tls-key"),
      clientCA: try clientCA.map { path throws(SettingsError) in try Self.bytes(path, option: "--tls-client-ca") })
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

  private static func bytes(_ path: FilePath, option: String) throws(SettingsError) -> [UInt8] {
    do { return try FileSystem.read(path, limit: maxByteCount) } catch {
      throw SettingsError(description: "\(option) \(path) cannot be read: \(error)")
    }
  }
}
