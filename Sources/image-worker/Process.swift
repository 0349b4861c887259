internal import ArgumentParser
internal import ImagePipeline
internal import SystemPackage
internal import WorkerTelemetry

/// `image-worker process`.
struct Process: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Process pictures from files, without a server.",
    discussion: """
      Each result is written to the output directory under its input's name with the result's extension. A picture \
      that fails is reported and does not stop the others; the exit status is then 1. One whose result would replace a \
      picture that was named, or another result, is not begun.
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
  @Flag(help: "Print how long each stage of each picture was busy.")
  var timings = false
  @Option(
    help: ArgumentHelp(
      "Write what each stage did when, strip by strip, as Chrome trace events, which Perfetto opens.",
      valueName: "file"),
    completion: .file())
  var traceOut: String?
  @OptionGroup(title: "Overrides of the preset")
  var overrides: ConfigurationOptions

  func run() async throws {
    let configuration = try PresetSource.catalog(path: presets).configuration(
      named: preset, overrides: overrides.configuration)
    try configuration.validate()
    let directory = FilePath(output)
    try FileSystem.makeDirectory(directory)
    guard let traceOut else { return try process(configuration, directory, trace: nil) }
    try await StageTrace.write(to: FilePath(traceOut)) { try process(configuration, directory, trace: $0) }
  }

  private func process(_ configuration: ProcessingConfiguration, _ directory: FilePath, trace: StageTrace?) throws {
    let destinations = Destinations(pictures: inputs.map { FilePath($0) })
    var failures = 0
    for input in inputs {
      do {
        let summary = try process(FilePath(input), configuration, directory, destinations, trace)
        if !quiet { print(summary) }
      } catch {
        failures += 1
        FileSystem.printError("\(input): \(error)")
      }
    }
    if failures > 0 { throw ExitCode(1) }
  }

  private func process(
    _ input: FilePath, _ configuration: ProcessingConfiguration, _ directory: FilePath, _ destinations: Destinations,
    _ trace: StageTrace?
  ) throws -> String {
    let file = ImageFile(path: input)
    let plan = try file.plan(configuration)
    let name = "\(input.stem ?? "picture").\(plan.fileExtension)"
    let destination = directory.appending(name)
    try destinations.claim(destination, for: input)
    let began = ContinuousClock.now
    let tracing = TraceTarget(observer: trace?.observer(picture: input.string))
    let report = try FileSystem.replacing(destination) { try file.process(configuration, tracing: tracing, into: $0) }
    trace?.note("picture", of: input.string, from: began, to: .now)
    return "\(input): \(report.input.format) \(report.input.size), \(report.inputByteCount) bytes"
      + " -> \(destination): \(report.output.size), \(report.outputByteCount) bytes"
      + (report.compressionQuality.map { configuration.maxBytes == nil ? "" : ", quality \($0)" } ?? "")
      + report.warnings.map { "\n  warning: \($0)" }.joined() + (timings ? "\n" + StageTable(report).text : "")
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
  @Option(help: ArgumentHelp("Format of the result: \(OutputFormat.list)."))
  var format: OutputFormat?
  @Flag(help: "Enlarge pictures that are smaller than the bounds.")
  var allowUpscale = false
  @Option(help: "Most bytes of a result; its quality falls as far as that needs.")
  var maxBytes: UInt64?
  @Flag(help: "Make a result smaller than its bounds where it does not keep --max-bytes otherwise.")
  var allowSmaller = false
  @Flag(help: "Keep the artist and the copyright of the picture's metadata.")
  var keepCopyright = false
  @Flag(help: "Deliver what there is of a picture that ends early.")
  var tolerateTruncation = false
  @Flag(help: "Encode even a picture that could be passed on as it is.")
  var alwaysEncode = false
  @Option(
    name: .customLong("filter"),
    help: ArgumentHelp(
      "A filter: name, name=intensity, or name=intensity,parameter=value,... Repeat it for a chain. "
        + "'image-worker filters' lists them.", valueName: "filter"),
    transform: Filter.init(argument:))
  var filters: [Filter] = []
  @OptionGroup(title: "Options of single formats, without effect on others")
  var formats: FormatArguments

  var configuration: ProcessingConfiguration {
    ProcessingConfiguration(
      maxWidth: maxWidth, maxHeight: maxHeight, compressionQuality: quality, scaleFactor: scaleFactor,
      preferredFormat: format, allowUpscale: allowUpscale ? true : nil, maxBytes: maxBytes,
      metadata: keepCopyright ? .keepCopyright : nil, tolerateTruncation: tolerateTruncation ? true : nil,
      alwaysEncode: alwaysEncode ? true : nil, filters: filters.isEmpty ? nil : filters,
      allowSmallerDimensions: allowSmaller ? true : nil, jpeg: formats.jpeg, png: formats.png, webp: formats.webp)
  }
}

extension OutputFormat: ExpressibleByArgument {
  /// "a, b or c".
  fileprivate static var list: String {
    let names = allCases.map(\.rawValue)
    return names.dropLast().joined(separator: ", ") + " or " + (names.last ?? "")
  }
}
