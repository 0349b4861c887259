internal import ArgumentParser
internal import ImagePipeline
internal import SystemPackage

/// `image-worker batch`.
struct Batch: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Process many images in parallel, without a server.",
    discussion: """
      Read files, and folders with everything in them. Write each result to the output directory, under its input's \
      name with the result's extension, in the same subfolder as the input. If two results would have the same name \
      (a.jpg and a.png), both keep the input's extension in their names. Results are written completely or not at all: \
      rerun an interrupted batch with --skip-existing to resume it.

      A failed image is reported and does not stop the others; the exit status is then 1. Files in a folder that are \
      not images are ignored. On a terminal, one line shows the progress, and failures are listed at the end. The last \
      lines are a summary.

      On SIGINT or SIGTERM, images in progress finish and no new ones start (exit status 130); \
      a second signal cancels the images in progress.
      """)

  @Argument(help: "Set the images and folders of images.", completion: .file())
  var inputs: [String] = []
  @Option(
    help: ArgumentHelp("Read more inputs from a file, one per line; - reads standard input.", valueName: "file"),
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
  @Flag(help: "Print a JSON object per result, one per line, then one with the summary.")
  var json = false
  @Flag(help: "Report only failures.")
  var quiet = false
  @Option(
    help: ArgumentHelp(
      "Write a timeline of all stages and threads as Chrome trace events; open it in Perfetto.",
      valueName: "file"),
    completion: .file())
  var traceOut: String?
  @OptionGroup
  var results: ResultOptions

  func validate() throws {
    if inputs.isEmpty, list == nil { throw ValidationError("Specify images or folders, or use --list.") }
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
      requested: requested, directory: directory, destinations: Destinations(images: images.map(\.path)), jobs: jobs,
      skipsExisting: skipExisting, memory: MemoryBudget(limit: memoryLimit << 20, maxWaiting: jobs), trace: trace)
    let report = RunReport(imageCount: images.count, json: json, quiet: quiet)
    try await report.run { try await run.process(images) { try report.note($0) } }
    if report.failedCount > 0 { throw ExitCode(1) }
    if run.isStopped { throw ExitCode(130) }
  }
}
