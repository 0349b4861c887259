/// A caller that the worker knows.
package struct Identity: Sendable, Equatable {
  /// The name in logs, metrics and traces.
  package var name: String
  /// Hashes of the tokens that prove the identity; two while a token is replaced.
  package var tokens: [TokenHash]
  /// Names of client certificates that prove the identity, as in `DNS:thumbnails.internal` or `CN=thumbnails`.
  package var certificates: [String]
  /// Whether the caller may use reflection.
  package var mayReflect: Bool

  /// Creates an identity.
  package init(name: String, tokens: [TokenHash], certificates: [String], mayReflect: Bool) {
    self.name = name
    self.tokens = tokens
    self.certificates = certificates
    self.mayReflect = mayReflect
  }
}

/// All callers that the worker knows.
package struct IdentityTable: Sendable, Equatable {
  private let identities: [Identity]
  private let tokens: [(hash: TokenHash, owner: Int)]
  private let certificates: [String: Int]

  /// Creates a table; of two identities with the same token or certificate the last one counts.
  package init(_ identities: [Identity]) {
    self.identities = identities
    tokens = identities.enumerated().flatMap { index, identity in identity.tokens.map { ($0, index) } }
    certificates = identities.enumerated().reduce(into: [:]) { owners, next in
      for name in next.element.certificates { owners[name] = next.offset }
    }
  }

  /// Whether two tables have the same identities in the same order.
  package static func == (one: IdentityTable, other: IdentityTable) -> Bool { one.identities == other.identities }

  /// Returns the identity that a token proves; compares it with every token, so that time reveals nothing.
  func identity(token: String) -> Identity? {
    let hash = TokenHash(of: token)
    var found: Int?
    for (known, owner) in tokens where known == hash { found = owner }
    return found.map { identities[$0] }
  }

  /// Returns the identity that the first known name of a verified certificate proves.
  func identity(certificateNames names: [String]) -> Identity? {
    names.lazy.compactMap { certificates[$0] }.first.map { identities[$0] }
  }
}
