internal import ArgumentParser
internal import ImagePipeline
internal import SystemPackage
internal import WorkerTelemetry

/// `image-worker process`.
struct Process: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Process images from files, without a server.",
    discussion: """
      Write each result to the output directory, under its input's name with the result's extension. A failed image \
      is reported and does not stop the others; the exit status is then 1. An image fails if its result would replace \
      an input or another result. On a terminal, one line shows the progress of several images, and failures are \
      listed at the end. The last lines are a summary.
      """)

  @Argument(help: "Set the images to process.", completion: .file())
  var inputs: [String]
  @Option(
    name: [.customShort("o"), .customLong("out")],
    help: ArgumentHelp("Write results to this directory; it is created if missing.", valueName: "directory"),
    completion: .directory)
  var output: String
  @Flag(help: "Print a JSON object per result, one per line, then one with the summary.")
  var json = false
  @Flag(help: "Report only failures.")
  var quiet = false
  @Flag(help: "Print how long each stage of each image was busy.")
  var timings = false
  @Option(
    help: ArgumentHelp(
      "Write a timeline of all stages as Chrome trace events; open it in Perfetto.",
      valueName: "file"),
    completion: .file())
  var traceOut: String?
  @OptionGroup
  var results: ResultOptions

  func run() async throws {
    let requested = try results.requested
    let directory = FilePath(output)
    try FileSystem.makeDirectory(directory, option: "--out")
    PartialFile.removeLeftovers(in: directory)
    guard let traceOut else { return try await process(requested, directory, trace: nil) }
    try await StageTrace.write(to: FilePath(traceOut)) { try await process(requested, directory, trace: $0) }
  }

  private func process(_ requested: RequestedResults, _ directory: FilePath, trace: StageTrace?) async throws {
    let destinations = Destinations(images: inputs.map { FilePath($0) })
    let report = RunReport(imageCount: inputs.count, json: json, quiet: quiet, showsDetails: timings)
    try await report.run {
      for input in inputs {
        let path = FilePath(input)
        let image = BatchImage(path: path, folder: "", name: path.stem ?? "image", isFound: false)
        let local = LocalImage(
          path: path, directory: directory, name: image.name, requested: requested, destinations: destinations,
          skipsExisting: false, isDurable: false)
        try report.note(await outcomes(of: local, image, trace))
        // The progress line may have no other thread to be drawn on.
        await Task.yield()
      }
    }
    if report.failedCount > 0 { throw ExitStatus.failure.code }
  }

  private func outcomes(of local: LocalImage, _ image: BatchImage, _ trace: StageTrace?) async -> [ResultLine] {
    do {
      switch FileSystem.kind(of: local.path) {
      case .other: throw BatchProblem.noRegularFile
      case .directory: throw BatchProblem.folder
      case .file, .missing: break
      }
      return try await local.run(cancellation: Cancellation(), trace: trace, admit: { _ in }).map {
        ResultLine(image, $0, local.requested, showsStages: timings)
      }
    } catch { return [ResultLine(image, error)] }
  }
}
