import ArgumentParser
import Foundation
import Testing
import WorkerTelemetry

@testable import image_worker

/// The files of this checkout.
enum Checkout {
  static let root = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// Returns the files below a folder with an extension, sorted by path relative to the root.
  static func files(in folder: String, extension name: String) throws -> [(path: String, text: String)] {
    try #require(FileManager.default.subpaths(atPath: root.appendingPathComponent(folder).path))
      .filter { $0.hasSuffix(".\(name)") && !$0.contains("Generated/") }.sorted()
      .map { ("\(folder)/\($0)", try text("\(folder)/\($0)")) }
  }

  static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
  }
}

/// Collects the texts that users see.
enum UserVisibleText {
  private static let introduction = """
    # User-visible text

    All texts that users see: help, metrics, messages and the comments of the wire contract. Written by `make text`.
    """

  /// Returns the contents of the whole file.
  static func collected() throws -> String {
    let help = commands()
    return try [introduction, help, metrics(), messages(besides: help), contract()].joined(separator: "\n\n") + "\n"
  }

  /// Returns the help of each command; a section that another command shares is only referenced.
  private static func commands() -> String {
    var known: Set<String> = []
    let all =
      [("", ImageWorker.helpMessage(columns: 118))]
      + ImageWorker.configuration.subcommands.map { command in
        (" \(command._commandName)", ImageWorker.helpMessage(for: command, columns: 118))
      }
    return "## Help\n\n"
      + all.map { name, help in
        let sections = help.split(separator: "\n\n").map(String.init).map { section in
          if section.count < 300 || known.insert(section).inserted { return section }
          return section.prefix { !$0.isNewline } + "\n  (as above)"
        }
        return "### image-worker\(name)\n\n```text\n\(sections.joined(separator: "\n\n"))\n```"
      }
      .joined(separator: "\n\n")
  }

  private static func metrics() -> String {
    let rows = MetricCatalog.all.map { "| `\($0.name)` | `\($0.unit)` | \($0.help) |" }
    return "## Metrics\n\n| metric | unit | help |\n|---|---|---|\n" + rows.joined(separator: "\n")
  }

  /// Returns the texts in the sources that no help contains: errors, warnings and log messages.
  private static func messages(besides help: String) throws -> String {
    let shown = String(help.filter { !$0.isWhitespace }) + MetricCatalog.all.map(\.help).joined().filter { $0 != " " }
    let files = try Checkout.files(in: "Sources", extension: "swift") + Checkout.files(in: "Sources", extension: "c")
    let sections: [String] = files.compactMap { path, source in
      var seen: Set<String> = []
      let texts = SourceScanner.texts(in: source).filter { text in
        !shown.contains(text.filter { !$0.isWhitespace }) && seen.insert(text).inserted
      }
      guard !texts.isEmpty else { return nil }
      return "### `\(path)`\n\n" + texts.map { "- " + $0.replacing("\n", with: "\n  ") }.joined(separator: "\n")
    }
    return "## Messages\n\n" + sections.joined(separator: "\n\n")
  }

  /// Returns the comments of the wire contract, each with the declaration that it describes.
  private static func contract() throws -> String {
    var lines: [String] = []
    var comment: [String] = []
    for line in try Checkout.text("Protos/imageworker/v1/image_worker.proto").split(separator: "\n") {
      let text = line.drop { $0 == " " }
      if text.hasPrefix("//") {
        comment.append(String(text.dropFirst(2).drop { $0 == " " }))
      } else if !comment.isEmpty {
        let declaration = text.prefix { $0 != "{" && $0 != "=" && $0 != ";" }.split(separator: " ")
        lines.append("- `\(declaration.joined(separator: " "))`: \(comment.joined(separator: " "))")
        comment = []
      }
    }
    return "## Wire contract\n\n" + lines.joined(separator: "\n")
  }
}
