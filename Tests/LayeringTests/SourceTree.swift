import Foundation
import Testing

/// The files of this checkout.
enum SourceTree {
  static let root = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  static func has(_ path: String) -> Bool {
    FileManager.default.fileExists(atPath: root.appendingPathComponent(path).path)
  }

  static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
  }

  /// Returns the files below a folder with one of these extensions, sorted; there must be at least one.
  static func files(in folder: String, extensions: Set<String> = ["swift"]) throws -> [SourceFile] {
    let files = try #require(FileManager.default.subpaths(atPath: root.appendingPathComponent(folder).path))
      .filter { extensions.contains(URL(fileURLWithPath: $0).pathExtension) }.sorted()
      .map { try SourceFile(path: $0, text: text("\(folder)/\($0)")) }
    try #require(!files.isEmpty, "\(folder) has no source")
    return files
  }

  /// Returns the names of the files in a folder.
  static func names(in folder: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: root.appendingPathComponent(folder).path).sorted()
  }

  /// Returns the names of the subfolders of a folder.
  static func folders(in folder: String) throws -> Set<String> {
    let url = root.appendingPathComponent(folder)
    let names = try FileManager.default.contentsOfDirectory(at: url, includingPropertiesForKeys: [.isDirectoryKey])
    return Set(
      try names.filter { try $0.resourceValues(forKeys: [.isDirectoryKey]).isDirectory == true }
        .map(\.lastPathComponent))
  }
}

/// A source file without its line comments.
struct SourceFile: Sendable {
  /// Path relative to the listed folder.
  var path: String
  var lines: [Substring]

  init(path: String, text: String) {
    self.path = path
    lines = text.split(separator: "\n").filter { !$0.drop { $0 == " " }.hasPrefix("//") }
  }

  /// The file without its line comments.
  var text: String { lines.joined(separator: "\n") }

  /// The modules that the file imports.
  var imports: Set<String> {
    let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "func", "var", "let", "typealias"]
    return Set(
      lines.compactMap { line in
        let words = line.split(separator: " ")
        // `import` may follow an access level and attributes.
        guard let index = words.firstIndex(of: "import"), index <= 2, words[..<index].allSatisfy(Self.isModifier)
        else { return nil }
        let name = words.dropFirst(index + 1).first { !kinds.contains($0) }
        return name.flatMap { $0.split(separator: ".").first.map(String.init) }
      })
  }

  private static func isModifier(_ word: Substring) -> Bool {
    word.hasPrefix("@") || ["public", "package", "internal", "private", "fileprivate"].contains(word)
  }

  /// The headers of this package that the file includes.
  var includes: [String] {
    lines.compactMap { line in
      guard line.hasPrefix("#include \"") else { return nil }
      return line.split(separator: "\"").dropFirst().first.map(String.init)
    }
  }

  /// Number of lines that name a pointer or obtain one.
  var pointerLineCount: Int {
    let names = ["OpaquePointer", "Unmanaged<", "withUnsafeBytes", "withUnsafeMutableBytes", "withUnsafePointer"]
    return lines.count { line in
      names.contains { line.contains($0) } || line.contains("Unsafe") && line.contains("Pointer")
        || line.contains("withUnsafe") && line.contains("Buffer")
    }
  }
}

/// The manifest's declarations, parsed from its text because asking the package manager takes seconds.
struct Manifest {
  /// Declared modules of this package and products, by target.
  var dependencies: [String: Set<String>] = [:]

  init() throws {
    let text = try SourceTree.text("Package.swift")
    var products: [String: Set<String>] = [:]
    for match in text.matches(of: /let (\w+): Target\.Dependency = \.product\(\s*name: "(\w+)"/) {
      products[String(match.1), default: []].insert(String(match.2))
    }
    for match in text.matches(of: /let (\w+): \[Target\.Dependency\] = \[((?:.|\n)*?)\n\]/) {
      products[String(match.1)] = Set(match.2.matches(of: /name: "(\w+)"/).map { String($0.1) })
    }
    let target = /\.(?:t|executableT|testT)arget\(\s*name: "([^"]+)"((?:.|\n)*?)\n  (?:\.|\/\/|\])/
    for match in text.replacing("\n]", with: "\n  ]").matches(of: target) {
      dependencies[String(match.1)] = Self.names(in: String(match.2), products: products)
    }
  }

  private static func names(in body: String, products: [String: Set<String>]) -> Set<String> {
    guard let start = body.firstRange(of: "dependencies: [") else { return [] }
    let rest = body[start.upperBound...]
    let end = rest.firstMatch(of: /\b(?:path|exclude|resources|swiftSettings|cSettings):/)
    let list = rest[..<(end?.range.lowerBound ?? rest.endIndex)]
    let names = Set(list.matches(of: /"([^"]+)"/).map { String($0.1) })
    return list.matches(of: /\b\w+\b/).reduce(into: names) { $0.formUnion(products[String($1.0)] ?? []) }
  }
}
