internal import ArgumentParser
internal import ImagePipeline
internal import SystemPackage

/// `image-worker batch`.
struct Batch: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Process many pictures side by side, without a server.",
    discussion: """
      Takes files, and folders with all that is in them. Results go to the output directory under their inputs' names \
      with the results' extension, in the folders that they have below the folder that was named. A result is there \
      whole or not at all, so that an interrupted batch goes on with --skip-existing where it stopped.

      A picture that fails is reported and does not stop the others; the exit status is then 1. What was found in a \
      folder and is no picture is passed over. SIGINT and SIGTERM let what is begun finish and begin nothing more \
      (exit status 130); a second one gives up what is under way.
      """)

  @Argument(help: "Pictures, and folders of pictures.", completion: .file())
  var inputs: [String] = []
  @Option(
    help: ArgumentHelp("A file that names further inputs, one on a line; - is the standard input.", valueName: "file"),
    completion: .file())
  var list: String?
  @Option(help: ArgumentHelp("Preset: \(Preset.builtIn.map(\.name).joined(separator: ", ")).", valueName: "name"))
  var preset = Preset.defaultName
  @Option(name: .customLong("out"), help: "Directory for the results; made when it is missing.", completion: .directory)
  var output: String
  @Option(help: "Pictures worked on at the same moment. Default: the number of cores.")
  var jobs: Int?
  @Option(name: .customLong("memory-limit-mib"), help: "Memory that all pictures together may hold.")
  var memoryLimit = 768
  @Flag(help: "Pass over pictures whose result is there already.")
  var skipExisting = false
  @Flag(help: "Report each picture as a JSON object on a line of its own.")
  var json = false
  @Flag(help: "Report only what failed.")
  var quiet = false
  @Option(
    help: ArgumentHelp(
      "Write what each stage did when, strip by strip and thread by thread, as Chrome trace events, which Perfetto opens.",
      valueName: "file"),
    completion: .file())
  var traceOut: String?
  @OptionGroup(title: "Overrides of the preset")
  var overrides: ConfigurationOptions

  func validate() throws {
    if inputs.isEmpty, list == nil { throw ValidationError("Name pictures or folders, or a --list of them.") }
    if let jobs, !(1...1024).contains(jobs) {
      throw ValidationError("--jobs is \(jobs); it must be between 1 and 1024.")
    }
    if !(1...1_048_576).contains(memoryLimit) {
      throw ValidationError("--memory-limit-mib is \(memoryLimit); it must be between 1 and 1048576.")
    }
  }

  func run() async throws {
    let configuration = try PresetCatalog().configuration(named: preset, overrides: overrides.configuration)
    try configuration.validate()
    let directory = FilePath(output)
    try FileSystem.makeDirectory(directory)
    let listed = try list.map(BatchInputs.lines(of:)) ?? []
    let pictures = try BatchInputs.pictures(in: (inputs + listed).map { FilePath($0) }, output: directory)
    guard let traceOut else { return try await process(pictures, configuration, directory, trace: nil) }
    try await StageTrace.write(to: FilePath(traceOut)) {
      try await process(pictures, configuration, directory, trace: $0)
    }
  }

  private func process(
    _ pictures: [BatchPicture], _ configuration: ProcessingConfiguration, _ directory: FilePath, trace: StageTrace?
  ) async throws {
    let jobs = self.jobs ?? SystemInfo.coreCount
    let run = BatchRun(
      configuration: configuration, directory: directory,
      destinations: Destinations(pictures: pictures.map(\.path)), jobs: jobs, skipsExisting: skipExisting,
      memory: MemoryBudget(limit: memoryLimit << 20, maxWaiting: jobs), trace: trace)
    let (json, quiet) = (self.json, self.quiet)
    let counts = try await run.process(pictures) { line in
      if quiet, line.status != .failed { return }
      try line.print(asJSON: json)
    }
    if !json, !quiet { try BatchLine.write("\(counts)") }
    if counts[.failed] > 0 { throw ExitCode(1) }
    if run.isStopped { throw ExitCode(130) }
  }
}
