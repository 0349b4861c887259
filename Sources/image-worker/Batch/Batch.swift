internal import ArgumentParser
internal import ImagePipeline
internal import SystemPackage

/// `image-worker batch`.
struct Batch: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Process many images side by side, without a server.",
    discussion: """
      Takes files, and folders with all that is in them. Results go to the output directory under their inputs' names \
      with the results' extension, in the folders that they have below the folder that was named. Where two results \
      would have the same name, as those of a.jpg and a.png, both keep their inputs' extensions in it. A result is there \
      whole or not at all, so that an interrupted batch resumes with --skip-existing where it stopped.

      An image that fails is reported and does not stop the others; the exit status is then 1. Files of a folder that \
      are no images are ignored. SIGINT and SIGTERM let what is begun finish and begin nothing more (exit status 130); \
      a second one cancels what is under way.
      """)

  @Argument(help: "Images, and folders of images.", completion: .file())
  var inputs: [String] = []
  @Option(
    help: ArgumentHelp("Read further inputs from a file, one on a line; - is the standard input.", valueName: "file"),
    completion: .file())
  var list: String?
  @Option(
    name: .customLong("out"),
    help: ArgumentHelp("Write results to this directory; it is created if missing.", valueName: "directory"),
    completion: .directory)
  var output: String
  @Option(
    help: ArgumentHelp(
      "Process this number of images at the same time. Default: the number of cores.", valueName: "count"))
  var jobs: Int?
  @Option(
    name: .customLong("memory-limit-mib"),
    help: ArgumentHelp("Limit the memory of all images together.", valueName: "MiB"))
  var memoryLimit = 768
  @Flag(help: "Skip images whose result exists already.")
  var skipExisting = false
  @Flag(help: "Report each result as a JSON object on a line of its own.")
  var json = false
  @Flag(help: "Report only failures.")
  var quiet = false
  @Option(
    help: ArgumentHelp(
      "Write what each stage did when, strip by strip and thread by thread, as Chrome trace events, which Perfetto opens.",
      valueName: "file"),
    completion: .file())
  var traceOut: String?
  @OptionGroup
  var results: ResultOptions

  func validate() throws {
    if inputs.isEmpty, list == nil { throw ValidationError("Name images or folders, or a --list of them.") }
    if let jobs, !(1...1024).contains(jobs) {
      throw ValidationError("--jobs is \(jobs); it must be between 1 and 1024.")
    }
    if !(1...1_048_576).contains(memoryLimit) {
      throw ValidationError("--memory-limit-mib is \(memoryLimit); it must be between 1 and 1048576.")
    }
  }

  func run() async throws {
    let requested = try results.requested
    let directory = FilePath(output)
    try FileSystem.makeDirectory(directory)
    let listed = try list.map(BatchInputs.lines(of:)) ?? []
    let images: [BatchImage]
    do {
      images = try BatchInputs.images(
        in: (inputs + listed).map { FilePath($0) }, output: directory, suffixes: requested.suffixes)
    } catch let error as BatchInputError { throw ValidationError("\(error).") }
    guard let traceOut else { return try await process(images, requested, directory, trace: nil) }
    try await StageTrace.write(to: FilePath(traceOut)) {
      try await process(images, requested, directory, trace: $0)
    }
  }

  private func process(
    _ images: [BatchImage], _ requested: RequestedResults, _ directory: FilePath, trace: StageTrace?
  ) async throws {
    let jobs = self.jobs ?? SystemInfo.coreCount
    let run = BatchRun(
      requested: requested, directory: directory, destinations: Destinations(pictures: images.map(\.path)), jobs: jobs,
      skipsExisting: skipExisting, memory: MemoryBudget(limit: memoryLimit << 20, maxWaiting: jobs), trace: trace)
    let (json, quiet) = (self.json, self.quiet)
    let counts = try await run.process(images) { line in
      if quiet, line.status != .failed { return }
      try line.print(asJSON: json)
    }
    if !json, !quiet { try BatchLine.write("\(counts)") }
    if counts[.failed] > 0 { throw ExitCode(1) }
    if run.isStopped { throw ExitCode(130) }
  }
}
