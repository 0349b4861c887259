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
      an input or another result.
      """)

  @Argument(help: "Set the images to process.", completion: .file())
  var inputs: [String]
  @Option(
    name: .customLong("out"),
    help: ArgumentHelp("Write results to this directory; it is created if missing.", valueName: "directory"),
    completion: .directory)
  var output: String
  @Flag(help: "Print only errors.")
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
    try FileSystem.makeDirectory(directory)
    guard let traceOut else { return try await process(requested, directory, trace: nil) }
    try await StageTrace.write(to: FilePath(traceOut)) { try await process(requested, directory, trace: $0) }
  }

  private func process(_ requested: RequestedResults, _ directory: FilePath, trace: StageTrace?) async throws {
    let destinations = Destinations(images: inputs.map { FilePath($0) })
    var failures = 0
    for input in inputs {
      let path = FilePath(input)
      let image = LocalImage(
        path: path, directory: directory, name: path.stem ?? "image", requested: requested,
        destinations: destinations, skipsExisting: false, isDurable: false)
      do {
        let kind = FileSystem.kind(of: path)
        guard kind != .other else { throw FileKindError() }
        for written in try await image.run(cancellation: Cancellation(), trace: trace, admit: { _ in }) {
          if !report(written, of: input, requested) { failures += 1 }
        }
      } catch {
        failures += 1
        FileSystem.printError("\(input): \(error)")
      }
    }
    if failures > 0 { throw ExitCode(1) }
  }

  /// - Returns: whether the result was made.
  private func report(_ written: LocalImage.Written, of input: String, _ requested: RequestedResults) -> Bool {
    switch written.outcome {
    case .skipped: break
    case .failed(let error):
      FileSystem.printError("\(input): \(written.id.isEmpty ? "" : "\(written.id): ")\(error)")
      return false
    case .done(let report):
      guard !quiet, let destination = written.destination else { break }
      let hasLimit = requested.results.contains { $0.id == written.id && $0.configuration.maxBytes != nil }
      print(
        "\(input): \(report.input.format) \(report.input.size), \(report.inputByteCount) bytes"
          + " -> \(destination): \(report.output.size), \(report.outputByteCount) bytes"
          + (report.compressionQuality.map { hasLimit ? ", quality \($0)" : "" } ?? "")
          + report.warnings.map { "\n  warning: \($0)" }.joined() + (timings ? "\n" + StageTable(report).text : ""))
    }
    return true
  }
}

/// A file that is none that images are read from.
struct FileKindError: Error, CustomStringConvertible {
  var description: String { "not a regular file" }
}
