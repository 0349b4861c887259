import Testing
import WorkerOperations
import WorkerPlayground

@testable import image_worker

@Suite("Security settings of serve")
struct SecuritySettingsTests {
  private static func settings(_ options: [String: String]) throws -> Settings {
    try Settings.read(options: options.mapValues { [$0] }, file: nil, environment: [:])
  }

  /// Checks the settings as a start of the worker does, and returns the error.
  private static func error(_ options: [String: String]) -> String {
    do {
      let settings = try settings(options)
      try settings.security.check(settings.listenAddress)
      return ""
    } catch { return "\(error)" }
  }

  @Test(
    "an address that other machines can reach needs --insecure",
    arguments: ["0.0.0.0", "::", "192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1"])
  func reachable(host: String) {
    let error = Self.error(["host": host])
    #expect(error.contains("--insecure") && error.contains("\(host)"), "\(error)")
    #expect(Self.error(["host": host, "insecure": "true"]) == "")
  }

  @Test(
    "an address of this machine alone needs nothing",
    arguments: ["127.0.0.1", "127.1.2.3", "localhost", "::1", "::ffff:127.0.0.1", "no-such-host.invalid"])
  func local(host: String) {
    #expect(Self.error(["host": host]) == "")
  }

  @Test("the playground is off by default, and on loopback unless others are allowed")
  func playground() throws {
    func address(_ options: [String: String]) throws -> String? {
      try Self.settings(options).playgroundAddress.map { "\($0.host) \($0.port) \($0.isLocal)" }
    }
    #expect(try address([:]) == nil)
    #expect(try address(["playground-host": "0.0.0.0"]) == nil)
    #expect(try address(["playground-port": "8080"]) == "127.0.0.1 8080 true")
    #expect(throws: SettingsError.self) { try address(["playground-port": "8080", "playground-host": "0.0.0.0"]) }
    let others = ["playground-port": "8080", "playground-host": "0.0.0.0", "insecure": "true"]
    #expect(try address(others) == "0.0.0.0 8080 false")
  }

  @Test("the playground is not served where callers identify themselves")
  func playgroundWithIdentities() throws {
    let tls = ["tls-certificate": "a.pem", "tls-key": "a.key", "playground-port": "8080"]
    #expect(try Self.settings(tls).playgroundAddress != nil)
    for other in [["tls-client-ca": "ca.pem"], ["identities": "identities.yaml"]] {
      let settings = try Self.settings(tls.merging(other) { $1 })
      #expect(throws: SettingsError.self) { try settings.playgroundAddress }
    }
  }

  @Test("a Unix domain socket takes the place of the address")
  func unixSocket() throws {
    let settings = try Self.settings([
      "host": "0.0.0.0", "unix-socket": "/run/worker.sock", "unix-socket-permissions": "600",
    ])
    #expect(settings.listenAddress == .unix(path: "/run/worker.sock", permissions: 0o600))
    #expect(try Self.settings(["unix-socket": "s"]).listenAddress == .unix(path: "s", permissions: 0o660))
    try settings.security.check(settings.listenAddress)
  }

  @Test("permissions that are not octal are refused", arguments: ["888", "rw", "1777", "-1"])
  func permissions(text: String) {
    let error = Self.error(["unix-socket": "s", "unix-socket-permissions": text])
    #expect(error == "--unix-socket-permissions is \"\(text)\"; it must be up to three octal digits, as in 660")
  }
}
