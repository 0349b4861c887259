internal import ArgumentParser
internal import GRPCCore
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
    name: .customLong("give-up-seconds"),
    help: ArgumentHelp("End the batch if no worker can be reached for this time. Default: 120.", valueName: "seconds"))
  private var giveUpTime: Int?
  @Option(
    help: ArgumentHelp(
      "Fail an image if a worker sends a larger result. Default: \(Client.defaultMaxResultBytes >> 20).",
      valueName: "mebibytes"))
  private var maxResultMib: Int?

  var giveUpSeconds: Int { giveUpTime ?? 120 }

  /// The addresses; empty if the images are processed in this process.
  var workers: [String] { addresses.map { $0.split(separator: ",").map(String.init) } ?? [] }

  func validate() throws {
    if addresses != nil, workers.isEmpty {
      throw ValidationError("--to is empty; it must be addresses such as host:50051.")
    }
    if !(1...86400).contains(giveUpSeconds) {
      throw ValidationError("--give-up-seconds is \(giveUpSeconds); it must be between 1 and 86400.")
    }
    if let maxResultMib, !(1...65536).contains(maxResultMib) {
      throw ValidationError("--max-result-mib is \(maxResultMib); it must be between 1 and 65536.")
    }
    if (tlsCertificate == nil) != (tlsKey == nil) {
      throw ValidationError("--tls-certificate and --tls-key must be set together.")
    }
    if workers.isEmpty, isEncrypted || tokenFile != nil {
      throw ValidationError("--tls, --tls-… and --token-file need --to.")
    }
    if workers.isEmpty, giveUpTime != nil || maxResultMib != nil {
      throw ValidationError("--give-up-seconds and --max-result-mib need --to.")
    }
  }

  private var isEncrypted: Bool { tls || tlsRoots != nil || tlsCertificate != nil || tlsServerName != nil }

  /// Reads the files once and creates a client, so that what cannot be used is an error before the first image.
  /// - Throws: `FileError`, or `ValidationError`.
  func check() throws {
    if workers.isEmpty { return }
    if let tlsRoots { try Self.check("--tls-ca", tlsRoots, contains: "CERTIFICATE") }
    if let tlsCertificate { try Self.check("--tls-certificate", tlsCertificate, contains: "CERTIFICATE") }
    if let tlsKey { try Self.check("--tls-key", tlsKey, contains: "PRIVATE KEY") }
    if let tokenFile { _ = try Self.token(in: tokenFile) }
    _ = try client
  }

  private static func check(_ option: String, _ path: String, contains part: String) throws {
    let text = String(decoding: try read(option, path), as: UTF8.self)
    let isPEM = text.split(whereSeparator: \.isNewline).contains { $0.hasPrefix("-----BEGIN ") && $0.contains(part) }
    if !isPEM { throw FileError(option, path, "cannot be used", "it contains no \(part) in PEM format") }
  }

  private static func read(_ option: String, _ path: String) throws(FileError) -> [UInt8] {
    do { return try FileSystem.read(FilePath(text: path), limit: 1 << 20) } catch {
      throw FileError(option, path, "cannot be read", "\(error)")
    }
  }

  /// An error of the client as an error of the command, with the option that may be wrong.
  func text(of error: ImageWorkerError) -> String {
    let hint: String? =
      switch error.tlsProblem {
      case .untrustedCertificate: tlsRoots == nil ? "set --tls-ca to its authority" : "check --tls-ca"
      case .wrongName: "set --tls-server-name to a name in the certificate"
      case .clientCertificateRequired: "set --tls-certificate and --tls-key"
      case .clientCertificateRefused: "check --tls-certificate"
      case .plaintextWorker: "leave out --tls and the other options of TLS"
      case nil where error.kind != .authentication: nil
      case nil: tokenFile != nil ? "check --token-file" : tlsCertificate == nil ? "set --token-file" : nil
      }
    return hint.map { "\(error.message); \($0)" } ?? error.message
  }

  /// A client of the workers.
  /// - Throws: `ValidationError` for what it cannot be created with.
  var client: Client {
    get throws {
      let file = { (path: String?) in path.map { TLS.PEM.file(path: $0) } }
      let material = TLS(
        rootCertificates: file(tlsRoots), certificate: file(tlsCertificate), privateKey: file(tlsKey),
        serverName: tlsServerName)
      var retry = ImageWorkerClient.RetryPolicy()
      retry.giveUpAfter = .seconds(giveUpSeconds)
      let token = tokenFile.map { path in
        { @Sendable () async throws -> String in try Self.token(in: path) }
      }
      do {
        return try Client(
          workers, tls: isEncrypted ? material : nil, token: token, retry: retry,
          maxResultBytes: maxResultMib.map { $0 << 20 } ?? Client.defaultMaxResultBytes)
      } catch let error as ClientError {
        let encrypts = workers.contains { $0.hasPrefix("https://") } && !isEncrypted
        throw ValidationError("--to: \(error)\(encrypts ? ", and set --tls" : "").")
      } catch {
        throw ValidationError("--tls-ca, --tls-certificate or --tls-key cannot be used: \(Self.cause(of: error)).")
      }
    }
  }

  private static func cause(of error: any Error) -> String { "\((error as? RuntimeError)?.cause ?? error)" }

  private static func token(in path: String) throws -> String {
    let text = String(decoding: try read("--token-file", path), as: UTF8.self)
    guard let token = text.split(whereSeparator: \.isWhitespace).first else {
      throw FileError("--token-file", path, "cannot be used", "it is empty")
    }
    return String(token)
  }
}
