internal import ArgumentParser
internal import ImageWorkerClient
internal import SystemPackage

/// The options by which `batch` reaches workers.
struct RemoteOptions: ParsableArguments {
  @Option(
    name: .customLong("to"),
    help: ArgumentHelp(
      "Process the images on these workers instead of in this process: host:port or unix:path, separated by commas.",
      valueName: "addresses"))
  var addresses: String?
  @Flag(help: "Encrypt connections to the workers.")
  var tls = false
  @Option(
    name: .customLong("tls-ca"),
    help: ArgumentHelp(
      "Check the certificates of the workers against this PEM file. Default: those of the system.", valueName: "file"),
    completion: .file())
  var tlsRoots: String?
  @Option(
    help: ArgumentHelp("Identify with this certificate in a PEM file.", valueName: "file"), completion: .file())
  var tlsCertificate: String?
  @Option(help: ArgumentHelp("Read the certificate's key from this PEM file.", valueName: "file"), completion: .file())
  var tlsKey: String?
  @Option(
    help: ArgumentHelp("Expect this host name in the certificates of the workers.", valueName: "name"))
  var tlsServerName: String?
  @Option(
    help: ArgumentHelp("Identify with the token in this file, which is read for each stream.", valueName: "file"),
    completion: .file())
  var tokenFile: String?
  @Option(
    help: ArgumentHelp("End the batch if no worker can be reached for this time.", valueName: "seconds"))
  var giveUpSeconds = 120

  /// The addresses; empty if the images are processed in this process.
  var workers: [String] { addresses.map { $0.split(separator: ",").map(String.init) } ?? [] }

  func validate() throws {
    if addresses != nil, workers.isEmpty {
      throw ValidationError("--to is empty; it must be addresses such as host:50051.")
    }
    if !(1...86400).contains(giveUpSeconds) {
      throw ValidationError("--give-up-seconds is \(giveUpSeconds); it must be between 1 and 86400.")
    }
    if (tlsCertificate == nil) != (tlsKey == nil) {
      throw ValidationError("--tls-certificate and --tls-key must be set together.")
    }
    let isEncrypted = tls || tlsRoots != nil || tlsCertificate != nil || tlsServerName != nil
    if workers.isEmpty, isEncrypted || tokenFile != nil {
      throw ValidationError("--tls, --tls-… and --token-file need --to.")
    }
    if !workers.isEmpty { _ = try client }
  }

  /// A client of the workers.
  /// - Throws: `ValidationError` for what it cannot be created with.
  var client: Client {
    get throws {
      let file = { (path: String?) in path.map { TLS.PEM.file(path: $0) } }
      let isEncrypted = tls || tlsRoots != nil || tlsCertificate != nil || tlsServerName != nil
      let material = TLS(
        rootCertificates: file(tlsRoots), certificate: file(tlsCertificate), privateKey: file(tlsKey),
        serverName: tlsServerName)
      var retry = ImageWorkerClient.RetryPolicy()
      retry.giveUpAfter = .seconds(giveUpSeconds)
      let token = tokenFile.map { path in
        { @Sendable () async throws -> String in try Self.token(in: path) }
      }
      do {
        return try Client(workers, tls: isEncrypted ? material : nil, token: token, retry: retry)
      } catch { throw ValidationError("--to \(workers.joined(separator: ",")): \(error).") }
    }
  }

  private static func token(in path: String) throws -> String {
    let bytes = try FileSystem.read(FilePath(path), limit: 1 << 16)
    return String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace).first.map(String.init) ?? ""
  }
}
