internal import ArgumentParser
internal import ImagePipeline
internal import SystemPackage

/// `image-worker process`.
struct Process: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Process pictures from files, without a server.",
    discussion: """
      Each result is written to the output directory under its input's name with the result's extension. A picture \
      that fails is reported and does not stop the others; the exit status is then 1.
      """)

  @Argument(help: "Pictures to process.", completion: .file())
  var inputs: [String]
  @Option(help: ArgumentHelp("Preset: \(Preset.builtIn.map(\.name).joined(separator: ", ")).", valueName: "name"))
  var preset = Preset.defaultName
  @Option(help: "A YAML file of presets beside the built-in ones.", completion: .file())
  var presets: String?
  @Option(name: .customLong("out"), help: "Directory for the results; made when it is missing.")
  var output: String
  @Flag(help: "Print nothing but errors.")
  var quiet = false
  @OptionGroup(title: "Overrides of the preset")
  var overrides: ConfigurationOptions

  func run() async throws {
    let configuration = try PresetSource.catalog(path: presets).configuration(
      named: preset, overrides: overrides.configuration)
    try configuration.validate()
    let directory = FilePath(output)
    try FileSystem.makeDirectory(directory)
    var failures = 0
    for input in inputs {
      do {
        let summary = try process(FilePath(input), configuration, directory)
        if !quiet { print(summary) }
      } catch {
        failures += 1
        FileSystem.printError("\(input): \(error)")
      }
    }
    if failures > 0 { throw ExitCode(1) }
  }

  private func process(
    _ input: FilePath, _ configuration: ProcessingConfiguration, _ directory: FilePath
  ) throws -> String {
    let file = PictureFile(path: input)
    let plan = try file.plan(configuration)
    let name = "\(input.stem ?? "picture").\(plan.outputInfo.format == "jpeg" ? "jpg" : plan.outputInfo.format)"
    let destination = directory.appending(name)
    let report = try FileSystem.replacing(destination) { try file.process(configuration, into: $0) }
    return "\(input): \(report.input.format) \(report.input.size), \(report.inputByteCount) bytes"
      + " -> \(destination): \(report.output.size), \(report.outputByteCount) bytes"
      + report.warnings.map { "\n  warning: \($0)" }.joined()
  }
}

/// The configuration fields that the local command takes.
struct ConfigurationOptions: ParsableArguments {
  @Option(help: "Widest result, in pixels.")
  var maxWidth: Int?
  @Option(help: "Highest result, in pixels.")
  var maxHeight: Int?
  @Option(help: "Compression quality, 0 to 1.")
  var quality: Double?
  @Option(help: "Divides the bounds; at least 1.")
  var scaleFactor: Double?
  @Option(help: "Format of the result: original, jpeg, png or webp.")
  var format: OutputFormat?
  @Flag(help: "Enlarge pictures that are smaller than the bounds.")
  var allowUpscale = false
  @Option(
    name: .customLong("filter"),
    help: ArgumentHelp(
      "A filter: name, name=intensity, or name=intensity,parameter=value,... Repeat it for a chain. "
        + "'image-worker filters' lists them.", valueName: "filter"),
    transform: Filter.init(argument:))
  var filters: [Filter] = []

  var configuration: ProcessingConfiguration {
    ProcessingConfiguration(
      maxWidth: maxWidth, maxHeight: maxHeight, compressionQuality: quality, scaleFactor: scaleFactor,
      preferredFormat: format, allowUpscale: allowUpscale ? true : nil, filters: filters.isEmpty ? nil : filters)
  }
}

extension OutputFormat: ExpressibleByArgument {}
