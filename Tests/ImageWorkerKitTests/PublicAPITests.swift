import Foundation
import Testing

/// The public interface of the library, which follows semantic versioning, is checked in.
@Suite("Public API of ImageWorkerKit")
struct PublicAPITests {
  private static let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
  private static let file = tests.appendingPathComponent("PublicAPI.txt")
  private static let sources = tests.deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Sources/ImageWorkerKit")

  @Test("PublicAPI.txt has every public declaration; UPDATE_PUBLIC_API=1 updates it")
  func upToDate() throws {
    let text = try Self.interface().joined(separator: "\n") + "\n"
    if ProcessInfo.processInfo.environment["UPDATE_PUBLIC_API"] != nil {
      try text.write(to: Self.file, atomically: true, encoding: .utf8)
    }
    let committed = try String(contentsOf: Self.file, encoding: .utf8)
    let (lines, known) = (Set(text.split(separator: "\n")), Set(committed.split(separator: "\n")))
    let added = lines.subtracting(known).sorted().joined(separator: "\n")
    let removed = known.subtracting(lines).sorted().joined(separator: "\n")
    let isUpToDate = text == committed
    #expect(
      isUpToDate,
      """
      the public interface has changed: add it to CHANGELOG.md, and run with UPDATE_PUBLIC_API=1
      added:
      \(added)
      removed, which breaks programs that use it:
      \(removed)
      """)
  }

  @Test("the interface names no type of the engine, and nothing is public by other means")
  func curated() throws {
    for file in try Self.files() {
      let text = try String(contentsOf: file, encoding: .utf8)
      #expect(!text.contains("@_exported") && !text.contains("public import"), "\(file.lastPathComponent)")
      #expect(!text.contains("public extension"), "\(file.lastPathComponent): write `public` before each member")
    }
    for line in try Self.interface() {
      #expect(!line.contains("ImagePipeline.") && !line.contains("PipelineError"), "\(line)")
    }
  }

  // MARK: Declarations

  private static func files() throws -> [URL] {
    try FileManager.default.subpathsOfDirectory(atPath: sources.path).filter { $0.hasSuffix(".swift") }.sorted()
      .map { sources.appendingPathComponent($0) }
  }

  /// The public declarations by the types around them, sorted.
  private static func interface() throws -> [String] {
    var all: [String] = []
    for file in try files() {
      let text = try String(contentsOf: file, encoding: .utf8)
      // The names of the types around the current line, by their indentation.
      var types: [(indentation: Int, name: String)] = []
      var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)[...]
      while let line = lines.popFirst() {
        let indentation = line.prefix { $0 == " " }.count
        let code = line.dropFirst(indentation)
        guard !code.isEmpty, !code.hasPrefix("//") else { continue }
        types.removeAll { $0.indentation >= indentation && code != "}" }
        let declaration = Self.declaration(code, &lines)
        let scope = types.map(\.name).joined(separator: ".")
        if code.hasPrefix("public ") || Self.isConformance(declaration) {
          all.append(scope.isEmpty ? declaration : "\(scope): \(declaration)")
        }
        if let name = declaration.firstMatch(of: #/^(?:\w+ )*(?:struct|class|enum|extension) ([\w.]+)/#) {
          types.append((indentation, String(name.1)))
        }
      }
    }
    return all.sorted()
  }

  /// Joins the lines of a declaration, without its body and the value of a property.
  private static func declaration(_ first: Substring, _ rest: inout ArraySlice<String>) -> String {
    var text = String(first)
    let hasBody = text.contains(#/^(?:public |extension ).*\b(?:func|init|struct|class|extension)\b/#)
    func isOpen() -> Bool { text.count { "([".contains($0) } > text.count { ")]".contains($0) } }
    while hasBody, isOpen() || !text.contains("{"), let next = rest.popFirst() {
      text += " " + next.trimmingCharacters(in: .whitespaces)
    }
    let end = text.firstRange(of: hasBody || !text.contains(" = ") ? " {" : " = ")
    if let end { text = String(text[..<end.lowerBound]) }
    return text.replacing("( ", with: "(").replacing(" )", with: ")")
  }

  /// Whether an extension adds a conformance.
  private static func isConformance(_ declaration: String) -> Bool {
    declaration.hasPrefix("extension ") && declaration.contains(": ")
  }
}
