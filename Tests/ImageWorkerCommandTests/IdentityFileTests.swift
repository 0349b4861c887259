import Foundation
import Testing
import WorkerOperations

@testable import WorkerService
@testable import image_worker

@Suite("File of identities")
struct IdentityFileTests {
  private static let hash = TokenHash(of: "secret").hexadecimal

  @Test("every key is read")
  func all() throws {
    let file = try IdentityFile(
      yaml: """
        identities:
          web-1.internal_A:
            tokens: [\(Self.hash)]
            certificates: ["DNS:web.internal", "CN=web"]
            presets: [favicon, preview]
            configuration: true
            reflection: false
            max_images: 8
            images_per_minute: 600
            bytes_per_hour: 1e9
            cpu_seconds_per_minute: 0.5
          free:
            tokens: [\(Self.hash)]
          limited:
            tokens: [\(Self.hash)]
            presets: [favicon]
        """)
    #expect(
      file.identities.first
        == Identity(
          name: "web-1.internal_A", tokens: [TokenHash(of: "secret")], certificates: ["DNS:web.internal", "CN=web"],
          mayReflect: false))
    #expect(
      file.policies == [
        CallerPolicy(
          name: "web-1.internal_A", presets: ["favicon", "preview"], mayConfigure: true, maxImages: 8,
          quotas: [
            CallerQuota(.images, per: .minute, amount: 600), CallerQuota(.bytes, per: .hour, amount: 1e9),
            CallerQuota(.cpuSeconds, per: .minute, amount: 0.5),
          ]),
        CallerPolicy(name: "free"), CallerPolicy(name: "limited", presets: ["favicon"], mayConfigure: false),
      ])
  }

  @Test("the example of the documentation is refused until it has a token of one's own")
  func example() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let article = try String(
      contentsOf: root.appending(path: "Sources/image-worker/Documentation.docc/Security.md"), encoding: .utf8)
    let block = article.split(separator: "```yaml\n").dropFirst().first?.split(separator: "```").first
    let yaml = String(try #require(block))
    let placeholder = try #require(yaml.firstMatch(of: /tokens:\n *- "([^"]+)"/)).1
    let error = #expect(throws: IdentityFileError.self) { try IdentityFile(yaml: yaml) }
    #expect(error?.line == 5 && error?.message.contains("`image-worker token` prints it") == true)
    #expect(try IdentityFile(yaml: yaml.replacing(placeholder, with: Self.hash)).identities.count == 1)
    let published = TokenHash(of: "password").hexadecimal
    let refusal = #expect(throws: IdentityFileError.self) {
      try IdentityFile(yaml: yaml.replacing(placeholder, with: published))
    }
    #expect(refusal?.message.contains("everybody knows; `image-worker token thumbnails` makes a token") == true)
  }

  @Test("presets that do not exist, and certificates that no client can send, are errors with their line")
  func references() throws {
    let file = try IdentityFile(
      yaml: """
        identities:
          a:
            tokens: [\(Self.hash)]
            presets: [favicon, tumbnail]
        """)
    let names: Set = ["favicon", "thumbnail"]
    let unknown = #expect(throws: IdentityFileError.self) { try file.check(presetNames: names, hasClientCA: false) }
    #expect(unknown?.line == 4)
    #expect(unknown?.message.hasPrefix("identities.a.presets has \"tumbnail\", which is not a preset") == true)
    #expect(unknown?.message.hasSuffix("did you mean thumbnail?") == true)
    try file.check(presetNames: nil, hasClientCA: false)
    try file.check(presetNames: names.union(["tumbnail"]), hasClientCA: false)
    let web = try IdentityFile(yaml: "identities:\n  web:\n    certificates: [CN=web]")
    let unusable = #expect(throws: IdentityFileError.self) { try web.check(presetNames: nil, hasClientCA: false) }
    #expect(unusable?.description.hasPrefix("line 3: identities.web.certificates needs --tls-client-ca") == true)
    try web.check(presetNames: nil, hasClientCA: true)
  }

  @Test(
    "an error has the line and the name",
    arguments: [
      ("", "line 1: must have one key, identities"), ("presets: {}", "line 1: must have one key, identities"),
      ("identities: [a]", "line 1: identities must be a mapping of names to values"),
      ("identities:\n  a: {}", "line 2: identities.a needs tokens or certificates"),
      ("identities:\n  a b: {}", "line 2: \"a b\" is not a valid identity name"),
      (
        "identities:\n  a:\n    token: x",
        "line 3: identities.a.token is unknown; it must be one of: tokens, certificates"
      ),
      ("identities:\n  a:\n    tokens: x", "line 3: identities.a.tokens must be a list"),
      (
        "identities:\n  a:\n    tokens: [x]",
        "line 3: identities.a.tokens has an invalid entry: x; it must be the SHA-256"
      ),
      (
        "identities:\n  a:\n    certificates: [web]",
        "line 3: identities.a.certificates has an invalid entry: web; it must begin"
      ),
      ("identities:\n  a:\n    reflection: 1", "line 3: identities.a.reflection must be true or false"),
      ("identities:\n  a:\n    max_images: 0", "line 3: identities.a.max_images must be a whole number above 0"),
      (
        "identities:\n  a:\n    bytes_per_minute: 0.5",
        "line 3: identities.a.bytes_per_minute must be a whole number above 0"
      ),
      (
        "identities:\n  a:\n    cpu_seconds_per_hour: .inf",
        "line 3: identities.a.cpu_seconds_per_hour must be a number above 0"
      ),
      ("identities: {", "is not YAML"),
    ])
  func errors(yaml: String, message: String) {
    var description = ""
    do { _ = try IdentityFile(yaml: yaml) } catch { description = "\(error)" }
    #expect(description.hasPrefix(message), "\(description)")
  }

  @Test("a new token fits the entry that is printed with it")
  func token() async throws {
    let outcome = try await WorkerProgram.run(["token", "web"])
    #expect(outcome.status == 0 && outcome.errors.isEmpty)
    let match = try #require(outcome.output.wholeMatch(of: /token: (iw_[\w-]{43})\n\n((?:.|\n)*)/))
    let file = try IdentityFile(yaml: String(match.2))
    #expect(file.identities.map(\.name) == ["web"] && file.identities[0].tokens == [TokenHash(of: String(match.1))])
    #expect(try await WorkerProgram.run(["token", "web"]).output != outcome.output)
    let refused = try await WorkerProgram.run(["token", "a b"])
    #expect(refused.status == 64 && refused.errors.contains("is not a valid identity name"))
  }
}
