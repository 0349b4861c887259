internal import ArgumentParser
internal import Dispatch
internal import ImagePipeline
internal import SystemPackage
internal import WorkerTelemetry

/// `image-worker process`.
struct Process: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Process images from files, without a server.",
    usage: "image-worker process <image> ... --out <place> [<options>]",
    discussion: """
      Examples:
        image-worker process photo.jpg --max-width 800 --out small.jpg
        image-worker process *.jpg --preset thumbnail --out small/
        cat photo.jpg | image-worker process - --format webp --out - > photo.webp

      --out names a file if there is one result and its name ends with .jpg, .png, .webp, .avif, .jxl, .gif or .raw, which is \
      then its format. Otherwise it names a directory, for results under their inputs' names with the extension of their \
      format. \
      With --out -, the result goes to standard output and the report to standard error.

      A failed image is reported and does not stop the others; the exit status is then 1. An image fails if its result \
      would replace an input or another result. On a terminal, one line shows the progress of several images, and \
      failures are listed at the end. The last lines are a summary.
      """)

  struct OutputOptions: ParsableArguments {
    @Argument(
      help: ArgumentHelp("Set the images to process; - is standard input.", valueName: "image"), completion: .file())
    var inputs: [String]
    @Option(
      name: [.customShort("o"), .customLong("out")],
      help: ArgumentHelp(
        "Write the result to this file, or results to this directory, which is created if missing; - is standard output.",
        valueName: "place"),
      completion: .file())
    var output: String
    @Flag(help: "Print how long each stage of each image was busy.")
    var timings = false
  }

  @OptionGroup(title: "Images")
  var images: OutputOptions
  @OptionGroup
  var results: ResultOptions
  @OptionGroup(title: "Report")
  var report: ReportOptions

  private var readsStandardInput: Bool { images.inputs.contains(StandardInput.name) }

  private var place: ResultPlace {
    get throws {
      let isSingle = images.inputs.count == 1 && results.renditions.isEmpty && !results.preview
      return try ResultPlace(images.output, isSingle: isSingle)
    }
  }

  func validate() throws {
    for input in images.inputs {
      if let problem = URLArgument.problem(input) { throw ValidationError("\(problem).") }
    }
    if images.inputs.count(where: { $0 == StandardInput.name }) > 1 {
      throw ValidationError("- is set twice; standard input has one image.")
    }
    if readsStandardInput, results.preview {
      throw ValidationError("--preview cannot be combined with standard input; request a small rendition instead.")
    }
    if let format = try place.format, let other = try results.overrides.configuration.preferredFormat, other != format {
      throw ValidationError("--out is \(images.output), but --format is \(other.rawValue); change one of them.")
    }
  }

  func run() async throws {
    let place = try place
    let named = ProcessingConfiguration(preferredFormat: place.format)
    let requested = try results.requested(PresetSource.catalog(path: results.presets), ownOverrides: named)
    switch place {
    case .directory(let directory): try prepare(directory)
    case .file(let path, _):
      let directory = path.removingLastComponent()
      try prepare(directory.isEmpty ? "." : directory)
    case .standardOutput:
      if Program.isOutputLost {
        throw ValidationError("--out is -, and standard output is closed; redirect it, or name a file.")
      }
      if case .terminal = StreamKind(of: .standardOutput) {
        throw ValidationError("--out is -, and standard output is a terminal; redirect it, or name a file.")
      }
    }
    let files = images.inputs.map(ImageFile.init(argument:))
    let destinations = Destinations(images: files.filter { !$0.isStandardInput }.map(\.path))
    try await report.withTrace(destinations) { try await process(files, requested, place, destinations, trace: $0) }
  }

  private func prepare(_ directory: FilePath) throws {
    try FileSystem.makeDirectory(directory, option: "--out")
    PartialFile.removeLeftovers(in: directory)
  }

  private func process(
    _ files: [ImageFile], _ requested: RequestedResults, _ place: ResultPlace, _ destinations: Destinations,
    trace: ChromeTrace?
  ) async throws {
    let signals = PartialFile.removeAtSignals()
    defer { for source in signals { source.cancel() } }
    let report = RunReport(
      imageCount: files.count, json: report.json, quiet: report.quiet, showsDetails: images.timings, place: place)
    try await report.run {
      for file in files {
        let name = file.isStandardInput ? nil : file.path.stemText
        let image = BatchImage(path: file.path, folder: "", name: name ?? "image", isFound: false)
        let local = LocalImage(
          file: file, place: place, name: image.name, requested: requested, destinations: destinations,
          skipsExisting: false, isDurable: false)
        try report.note(await outcomes(of: local, image, trace))
        // The progress line may have no other thread to be drawn on.
        await Task.yield()
      }
    }
    if report.failedCount > 0 { throw ExitStatus.failure.code }
  }

  private func outcomes(of local: LocalImage, _ image: BatchImage, _ trace: ChromeTrace?) async -> [ResultLine] {
    do {
      switch local.file.isStandardInput ? .file : FileSystem.kind(of: image.path) {
      case .other: throw BatchProblem.noRegularFile
      case .directory: throw BatchProblem.folder
      case .file, .missing: break
      }
      return try await local.run(cancellation: Cancellation(), trace: trace, admit: { _ in }).map {
        ResultLine(image, $0, local.requested, showsStages: images.timings)
      }
    } catch { return [ResultLine(image, error)] }
  }
}
