internal import ArgumentParser

/// The settings as options of `playground`, which has other defaults.
enum PlaygroundSettingOptions: OptionTable {
  static let options = SettingOptions.list(defaults: [
    "playgroundPort": "\(PlaygroundCommand.defaultPort), or a free one", "port": "50051, or a free one",
  ])

  static func validate(_ values: OptionValues) throws {}
}

/// `image-worker playground`.
struct PlaygroundCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "playground",
    abstract: "Serve a page to try out fields and tune presets in a browser.",
    discussion: """
      Open http://127.0.0.1:8080/ and drop an image on the page. It shows previews while you move a slider, compares \
      results, shows where time and memory went, and writes the request as a preset, a command or code. Images stay on \
      this machine.

      This is 'image-worker serve' with --playground-port 8080. It has the same settings. If another process has port \
      8080 or 50051, a free port is chosen; the log shows the address.
      """)

  static let defaultPort = 8080

  @Option(
    name: .customLong("config"), help: ArgumentHelp("Read settings from a YAML file.", valueName: "file"),
    completion: .file())
  var configurationFile: String?
  @OptionGroup(title: "Settings")
  var options: TableOptions<PlaygroundSettingOptions>

  func validate() throws { try Serve.validate(options.values) }

  func run() async throws {
    try await Serve.run(options.values, file: configurationFile) { settings in
      settings.choosesPort = !settings.isPortSet
      settings.choosesPlaygroundPort = settings.playgroundPort == nil
      settings.playgroundPort = settings.playgroundPort ?? Self.defaultPort
    }
  }
}
