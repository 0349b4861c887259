internal import ArgumentParser

/// `image-worker playground`.
struct PlaygroundCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "playground",
    abstract: "Serve a page to try out fields and tune presets in a browser.",
    discussion: """
      Open http://127.0.0.1:8080/ and drop an image on the page. It shows previews while you move a slider, compares \
      results, shows where time and memory went, and writes the request as a preset, a command or code. Images stay on \
      this machine.

      This is 'image-worker serve' with --playground-port 8080. It has the same settings.
      """)

  static let defaultPort = 8080

  @Option(
    name: .customLong("config"), help: ArgumentHelp("Read settings from a YAML file.", valueName: "file"),
    completion: .file())
  var configurationFile: String?
  @OptionGroup(title: "Settings")
  var options: TableOptions<SettingOptions>

  func validate() throws { try Serve.validate(options) }

  func run() async throws {
    try await Serve.run(options, file: configurationFile) { settings in
      settings.playgroundPort = settings.playgroundPort ?? Self.defaultPort
    }
  }
}
