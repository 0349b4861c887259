import ArgumentParser
import Fields
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

    All texts that users see, each once: help, metrics and messages. Written by `make text`. The comments of the wire
    contract are in `Protos/imageworker/v1/image_worker.proto`.
    """

  /// Returns the contents of the whole file.
  static func collected() throws -> String {
    let help = commands()
    return try [introduction, help, metrics(), messages(besides: help)].joined(separator: "\n\n") + "\n"
  }

  /// Returns the help of each command; an option with the text of an earlier command's is only named.
  private static func commands() -> String {
    var known: Set<String> = []
    let all =
      [("", ImageWorker.helpMessage(columns: 118))]
      + ImageWorker.configuration.subcommands.map { command in
        (" \(command._commandName)", ImageWorker.helpMessage(for: command, columns: 118))
      }
    return "## Help\n\n"
      + all.map { name, help in
        let sections = help.split(separator: "\n\n").map { new(in: String($0), &known) }
        return "### image-worker\(name)\n\n```text\n\(sections.joined(separator: "\n\n"))\n```"
      }
      .joined(separator: "\n\n")
  }

  /// Returns a section of help without the options in `known`, whose names follow in one line; adds the others to it.
  private static func new(in section: String, _ known: inout Set<String>) -> String {
    var (lines, repeated, isRepeated): ([Substring], [Substring], Bool) = ([], [], false)
    let all = section.split(separator: "\n", omittingEmptySubsequences: false)
    for (index, line) in all.enumerated() {
      if line.hasPrefix("  -") {
        let more = all[(index + 1)...].prefix { $0.hasPrefix("     ") }
        isRepeated = !known.insert(([line] + more).joined(separator: "\n")).inserted
        if isRepeated { repeated.append(line.dropFirst(2).prefix { $0 != " " && $0 != "," }) }
      } else if !line.hasPrefix("     ") {
        isRepeated = false
      }
      if !isRepeated { lines.append(line) }
    }
    let text = lines.joined(separator: "\n")
    return repeated.isEmpty ? text : text + "\n  as above: " + repeated.joined(separator: " ")
  }

  /// Returns the contents of the page with all options of an image.
  static func options() -> String {
    let groups = [
      ("Size and position", PlacementTable.self as any ConfigurationPart.Type),
      ("Format, quality and filters", DeliveryTable.self), ("Colors and metadata", MetadataTable.self),
      ("Encoders", FormatTable.self),
    ]
    let tables = groups.map { title, table in
      let rows = zip(table.fields, table.options)
        .map { field, option in
          let value = field.valueName.map { " <\($0)>" } ?? ""
          let help = option.help.replacing("|", with: "\\|")
          return "| `--\(field.name)\(value)` | `\(field.path.joined(separator: "."))` | \(help) |"
        }
      return "## \(title)\n\n| option | field | effect |\n|---|---|---|\n" + rows.joined(separator: "\n")
    }
    return ([optionsIntroduction] + tables).joined(separator: "\n\n") + "\n"
  }

  private static let optionsIntroduction = """
    # All options

    Find the option and the field for what an image should become.

    The options are those of `process`, `batch` and `inspect`, and of a rendition; the fields are those of `configuration` in a call and
    of a preset in a file. An option without a value has an opposite: `--no-pad` for `--pad`. Options spell values in lower case with
    dashes, as in `--gravity south-east`; calls as in the contract, `GRAVITY_SOUTH_EAST`; presets and the Python client `south_east`.
    [Options and formats](Formats.md) explains how they work together. This page is written by `make text`.
    """

  private static func metrics() -> String {
    let rows = MetricCatalog.all.map { "| `\($0.name)` | `\($0.unit)` | \($0.help) |" }
    return "## Metrics\n\n| metric | unit | help |\n|---|---|---|\n" + rows.joined(separator: "\n")
  }

  /// Returns the texts in the sources that no help contains: errors, warnings and log messages.
  private static func messages(besides help: String) throws -> String {
    let shown = String(help.filter { !$0.isWhitespace }) + MetricCatalog.all.map(\.help).joined().filter { $0 != " " }
    let files = try Checkout.files(in: "Sources", extension: "swift") + Checkout.files(in: "Sources", extension: "c")
    var seen: Set<String> = []
    var modules: [(name: Substring, lines: [String])] = []
    for (path, source) in files {
      let module = path.split(separator: "/")[1]
      if modules.last?.name != module { modules.append((module, [])) }
      let texts = SourceScanner.texts(in: source).filter { text in
        !shown.contains(text.filter { !$0.isWhitespace }) && seen.insert(text).inserted
      }
      modules[modules.count - 1].lines += texts.map { "- " + $0.replacing("\n", with: "\n  ") }
    }
    return "## Messages\n\n"
      + modules.filter { !$0.lines.isEmpty }.map { "### \($0.name)\n\n\($0.lines.joined(separator: "\n"))" }
      .joined(separator: "\n\n")
  }

  /// Returns the comments of the wire contract, each with the declaration that it describes.
  static func contract() throws -> String {
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
    return lines.joined(separator: "\n")
  }
}
