import Testing

@testable import WorkerOperations

@Suite("IdentityTable")
struct IdentityTableTests {
  /// The SHA-256 of "abc".
  ///
  /// Source: FIPS 180-2, appendix B.1.
  private static let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

  @Test("a token's hash is its SHA-256 in hexadecimal")
  func hash() throws {
    #expect(TokenHash(of: "abc").hexadecimal == Self.abc)
    #expect(TokenHash(hexadecimal: Self.abc) == TokenHash(of: "abc"))
    #expect(TokenHash(hexadecimal: Self.abc.uppercased()) == TokenHash(of: "abc"))
    #expect(TokenHash(of: "abd") != TokenHash(of: "abc"))
    let zeros = String(repeating: "0", count: 63) + "a"
    #expect(TokenHash(hexadecimal: zeros)?.hexadecimal == zeros)
  }

  @Test("hashes that differ in one bit are different", arguments: 0..<64)
  func bits(digit: Int) throws {
    var digits = Array(Self.abc)
    digits[digit] = digits[digit] == "f" ? "e" : "f"
    #expect(try #require(TokenHash(hexadecimal: String(digits))) != TokenHash(of: "abc"))
  }

  @Test(
    "a text that is no hash is refused",
    arguments: ["", "ab", abc + "0", String(abc.dropLast()), String(abc.dropLast()) + "g", "+" + abc.dropFirst()])
  func noHash(text: String) { #expect(TokenHash(hexadecimal: text) == nil) }

  private let table = IdentityTable([
    Identity(
      name: "a", tokens: [TokenHash(of: "old"), TokenHash(of: "new")], certificates: ["DNS:a.internal"],
      mayReflect: true),
    Identity(name: "b", tokens: [TokenHash(of: "b")], certificates: ["CN=b"], mayReflect: false),
  ])

  @Test(
    "each token of an identity proves it",
    arguments: [("old", "a"), ("new", "a"), ("b", "b"), ("", nil), ("bb", nil)] as [(String, String?)])
  func tokens(token: String, name: String?) { #expect(table.identity(token: token)?.name == name) }

  @Test(
    "the first known name of a certificate proves an identity",
    arguments: [
      (["DNS:a.internal"], "a"), (["DNS:other", "CN=b"], "b"), (["DNS:a.internal", "CN=b"], "a"), (["CN=a"], nil),
      ([], nil), (["DNS:b"], nil),
    ] as [([String], String?)])
  func certificates(names: [String], name: String?) {
    #expect(table.identity(certificateNames: names)?.name == name)
  }
}
