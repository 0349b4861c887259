internal import ArgumentParser
internal import FoundationEssentials
internal import WorkerOperations

/// `image-worker token`.
struct Token: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Make a bearer token and its entry for the identities file.",
    discussion: """
      Print a new random token, which is not stored anywhere, and its entry for the identities file \
      (serve --identities). The entry contains only the SHA-256 of the token.

      Clients send the token in the metadata "authorization" with the value "Bearer TOKEN".
      """)

  @Argument(help: "Name of the identity, for logs and metrics.")
  var name: String

  func validate() throws {
    do { try IdentityFile.check(name: name) } catch { throw ValidationError("\(error.message).") }
  }

  func run() throws {
    let token = Self.random()
    try FileSystem.printLine("token: \(token)\n\n\(entry(TokenHash(of: token)))")
  }

  private func entry(_ hash: TokenHash) -> String {
    "identities:\n  \(name):\n    tokens:\n      - \"\(hash.hexadecimal)\""
  }

  /// Returns a text of 256 random bits, with a prefix by which leaked tokens can be found.
  private static func random() -> String {
    var generator = SystemRandomNumberGenerator()
    let bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    let text = Data(bytes).base64EncodedString()
    return "iw_" + String(text.filter { $0 != "=" }.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 })
  }
}
