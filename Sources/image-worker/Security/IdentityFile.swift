internal import Fields
internal import WorkerOperations
internal import WorkerService
internal import Yams

/// The callers of a YAML file.
///
/// One key, `identities`, with a mapping of names to what proves each identity, and to what it may do:
///
///     identities:
///       thumbnails:
///         tokens: [5d41…]
///         presets: [favicon, preview]
///         images_per_minute: 600
struct IdentityFile {
  /// A value of the file, and its line, counted from 1.
  struct Mention: Equatable {
    let identity: String
    let value: String
    let line: Int?
  }

  private(set) var identities: [Identity] = []
  private(set) var policies: [CallerPolicy] = []
  /// The presets that identities may use, in the order of the file.
  private(set) var presets: [Mention] = []
  /// The first certificate of an identity.
  private(set) var firstCertificate: Mention?

  private static let maxCount = 200
  private static let maxNameByteCount = 64
  /// A hash that the documentation of earlier versions had as its example.
  private static let publishedHash = TokenHash(of: "password")
  private static let quotas = CallerQuota.Resource.allCases.flatMap { resource in
    CallerQuota.Period.allCases.map { CallerQuota(resource, per: $0, amount: 1) }
  }
  private static let keys =
    ["tokens", "certificates", "presets", "configuration", "reflection", "max_images"] + quotas.map(\.name)

  /// Reads and checks the text of a file.
  ///
  /// - Throws: `IdentityFileError` naming the first line that is wrong.
  init(yaml: String) throws(IdentityFileError) {
    let root: Node?
    do { root = try Yams.compose(yaml: yaml) } catch {
      throw IdentityFileError(line: nil, message: "is not YAML: \(error)")
    }
    guard let mapping = root?.mapping, mapping.count == 1, let (key, value) = mapping.first,
      key.string == "identities"
    else {
      throw IdentityFileError(line: 1, message: "must have one key, identities")
    }
    let entries = try Self.mapping(value, "identities")
    guard entries.count <= Self.maxCount else {
      throw IdentityFileError(
        line: nil, message: "has \(entries.count) identities; at most \(Self.maxCount) are accepted")
    }
    for (key, body) in entries { try add(key, body) }
  }

  private mutating func add(_ key: Node, _ body: Node) throws(IdentityFileError) {
    let name = key.string ?? ""
    try Self.check(name: name, line: key.mark?.line)
    var identity = Identity(name: name, tokens: [], certificates: [], mayReflect: true)
    var policy = CallerPolicy(name: name)
    var mayConfigure: Bool?
    for (key, value) in try Self.mapping(body, name) {
      try read(key.string ?? "", value, &identity, &policy, &mayConfigure)
    }
    guard !identity.tokens.isEmpty || !identity.certificates.isEmpty else {
      throw IdentityFileError(
        line: key.mark?.line,
        message: "identities.\(name) needs tokens or certificates; `image-worker token \(name)` makes one"
      )
    }
    // A list of presets says little if each field of them can be overridden.
    policy.mayConfigure = mayConfigure ?? (policy.presets == nil)
    identities.append(identity)
    policies.append(policy)
  }

  /// Reads one key of an identity.
  private mutating func read(
    _ key: String, _ value: Node, _ identity: inout Identity, _ policy: inout CallerPolicy, _ mayConfigure: inout Bool?
  ) throws(IdentityFileError) {
    let name = identity.name
    let field = Field(name: "identities.\(name).\(key)", node: value)
    switch key {
    case "tokens":
      identity.tokens = try field.list { TokenHash(hexadecimal: $0) }
      guard !identity.tokens.contains(Self.publishedHash) else {
        throw field.problem(
          "has the SHA-256 of \"password\", an example that everybody knows; `image-worker token \(name)` makes a token"
        )
      }
    case "certificates":
      identity.certificates = try field.list { Self.isCertificateName($0) ? $0 : nil }
      firstCertificate = firstCertificate ?? field.mentions(of: name).first
    case "presets":
      policy.presets = Set(try field.list { $0 })
      presets += field.mentions(of: name)
    case "configuration": mayConfigure = try field.bool()
    case "reflection": identity.mayReflect = try field.bool()
    case "max_images": policy.maxImages = Int(try field.number(isWhole: true))
    default:
      guard var quota = Self.quotas.first(where: { $0.name == key }) else {
        throw field.problem("is unknown; it must be one of: \(Self.keys.joined(separator: ", "))")
      }
      quota.amount = try field.number(isWhole: quota.resource != .cpuSeconds)
      policy.quotas.append(quota)
    }
  }

  /// Checks what the file names against the rest of the worker.
  ///
  /// - Parameters:
  ///   - presetNames: The presets that the worker has; `nil` if they are not known.
  ///   - hasClientCA: Whether clients can identify themselves by certificates.
  /// - Throws: `IdentityFileError` naming the first line with something that does not exist.
  func check(presetNames: Set<String>?, hasClientCA: Bool) throws(IdentityFileError) {
    if !hasClientCA, let certificate = firstCertificate {
      throw IdentityFileError(
        line: certificate.line,
        message:
          "identities.\(certificate.identity).certificates needs --tls-client-ca, without which clients send none")
    }
    guard let presetNames, let unknown = presets.first(where: { !presetNames.contains($0.value) }) else { return }
    throw IdentityFileError(
      line: unknown.line,
      message: "identities.\(unknown.identity).presets has \"\(unknown.value)\", which is not a preset of this worker; "
        + "use any of: \(presetNames.sorted().joined(separator: ", "))\(NearestName.question(unknown.value, in: presetNames))"
    )
  }

  private static func mapping(_ node: Node, _ name: String) throws(IdentityFileError) -> [(Node, Node)] {
    guard let mapping = node.mapping else {
      throw IdentityFileError(line: node.mark?.line, message: "\(name) must be a mapping of names to values")
    }
    return mapping.map { ($0.key, $0.value) }
  }

  /// Checks the name of an identity.
  static func check(name: String, line: Int? = nil) throws(IdentityFileError) {
    guard (1...maxNameByteCount).contains(name.utf8.count), name.utf8.allSatisfy(isNameByte) else {
      throw IdentityFileError(
        line: line,
        message:
          "\(String(reflecting: name)) is not a valid identity name; use up to \(maxNameByteCount) letters, digits and . _ -"
      )
    }
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    Character(UnicodeScalar(byte)).isASCIILetterOrDigit
      || [UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-")].contains(byte)
  }

  private static func isCertificateName(_ name: String) -> Bool {
    ["URI:", "DNS:", "email:", "CN="].contains { name.hasPrefix($0) && name.count > $0.count }
  }
}

/// A file of identities that cannot be used.
struct IdentityFileError: Error, Equatable, CustomStringConvertible {
  /// Counted from 1; `nil` if no line is the cause.
  var line: Int?
  var message: String

  var description: String { (line.map { "line \($0): " } ?? "") + message }
}

/// A value of the file, with its name for errors.
private struct Field {
  let name: String
  let node: Node

  func problem(_ message: String) -> IdentityFileError {
    IdentityFileError(line: node.mark?.line, message: "\(name) \(message)")
  }

  /// A list of texts, each converted by `element`, which returns `nil` for one that is wrong.
  func list<Element>(_ element: (String) -> Element?) throws(IdentityFileError) -> [Element] {
    guard let sequence = node.sequence, !sequence.isEmpty else {
      throw problem("must be a list with at least one entry")
    }
    var elements: [Element] = []
    for node in sequence {
      guard let text = node.scalar?.string, let value = element(text) else {
        throw problem("has an invalid entry: \(node.scalar?.string ?? "a list or a mapping"); \(accepted)")
      }
      elements.append(value)
    }
    return elements
  }

  /// The entries of a list with their lines.
  func mentions(of identity: String) -> [IdentityFile.Mention] {
    (node.sequence.map(Array.init) ?? []).map { entry in
      IdentityFile.Mention(identity: identity, value: entry.scalar?.string ?? "", line: entry.mark?.line)
    }
  }

  private var accepted: String {
    name.hasSuffix(".tokens")
      ? "it must be the SHA-256 of a token in 64 hexadecimal digits, as `image-worker token` prints it"
      : name.hasSuffix(".certificates") ? "it must begin with URI:, DNS:, email: or CN=" : "it must be text"
  }

  func bool() throws(IdentityFileError) -> Bool {
    guard node.tag == Tag(.bool), let value = node.bool else { throw problem("must be true or false") }
    return value
  }

  func number(isWhole: Bool) throws(IdentityFileError) -> Double {
    guard let value = node.float, value > 0, value < 1e15, !isWhole || value == value.rounded() else {
      throw problem("must be a \(isWhole ? "whole " : "")number above 0")
    }
    return value
  }
}

extension Character {
  fileprivate var isASCIILetterOrDigit: Bool { isASCII && (isLetter || isNumber) }
}
