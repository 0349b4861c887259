import ArgumentParser
import Testing

@testable import image_worker

/// The help of every command, as printed by the program and as declared.
@Suite("Help", .timeLimit(.minutes(15)))
struct HelpTests {
  static let commands = ImageWorker.configuration.subcommands.map { $0._commandName }

  @Test("the program lists every command")
  func program() async throws {
    let outcome = try await WorkerProgram.run(["--help"])
    #expect(outcome.status == 0 && outcome.errors.isEmpty)
    #expect(
      Set(Self.commands) == ["serve", "playground", "process", "batch", "inspect", "presets", "filters", "token"])
    let listed = outcome.output.split(separator: "\n").filter { $0.hasPrefix("  ") }.compactMap {
      $0.split(separator: " ").first.map(String.init)
    }
    for command in Self.commands { #expect(listed.contains(command), "\(command)") }
  }

  @Test("--help of a command prints its help and exits with 0", arguments: commands)
  func command(name: String) async throws {
    let command = try #require(ImageWorker.configuration.subcommands.first { $0._commandName == name })
    let outcome = try await WorkerProgram.run([name, "--help"])
    #expect(outcome.status == 0 && outcome.errors.isEmpty)
    #expect(outcome.output.contains("USAGE: image-worker \(name)"))
    #expect(!command.configuration.abstract.isEmpty)
    let words = { (text: String) in text.split { $0 == " " || $0 == "\n" } }
    let abstract = words(command.configuration.abstract)
    #expect(Array(words(outcome.output).dropFirst().prefix(abstract.count)) == abstract)
  }

  @Test("commands with results begin with examples, and with --out", arguments: ["process", "batch"])
  func examples(name: String) throws {
    let command = try #require(ImageWorker.configuration.subcommands.first { $0._commandName == name })
    let help = command.helpMessage(columns: 80)
    let options = help.split(separator: "\n").filter { $0.hasPrefix("  -") }
    #expect(options.first?.hasPrefix("  -o, --out") == true)
    #expect(help.contains("Examples:\n  image-worker \(name) photo"), "\(help.prefix(600))")
    for title in ["SIZE AND POSITION:", "FORMAT, QUALITY AND FILTERS:", "REPORT:"] { #expect(help.contains(title)) }
  }

  @Test("every option has a description", arguments: commands)
  func descriptions(name: String) throws {
    let command = try #require(ImageWorker.configuration.subcommands.first { $0._commandName == name })
    let lines = command.helpMessage(columns: 200).split(separator: "\n", omittingEmptySubsequences: false)
    var optionCount = 0
    for (line, next) in zip(lines, lines.dropFirst()) where line.hasPrefix("  -") {
      optionCount += 1
      // After the option's names and value, or below them.
      let words = line.split(separator: " ").drop { $0.hasPrefix("-") || $0.hasPrefix("<") }
      #expect(!words.isEmpty || next.hasPrefix("          "), "\(name):\(line)")
    }
    #expect(optionCount > 0)
  }
}
