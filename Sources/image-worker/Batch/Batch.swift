internal import Admission
internal import ArgumentParser
internal import ImagePipeline
internal import ImageWorkerClient
internal import SystemPackage
internal import WorkerService
internal import WorkerTelemetry

/// `image-worker batch`.
struct Batch: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Process many images in parallel, in this process or on workers.",
    usage: "image-worker batch <image or folder> ... --out <directory> [<options>]",
    discussion: """
      Examples:
        image-worker batch photos/ --preset upload --out small/
        image-worker batch photos/ --format webp --out small/ --to 10.0.0.1:50051
        find . -name '*.jpg' -print0 | image-worker batch --list - --null --out small/

      Read files, and folders with everything in them but hidden files. Write each result to the output directory, \
      under its input's name with the result's extension, in the same subfolder as the input. If two results would \
      have the same name (a.jpg and a.png), both keep the input's extension in their names. Results are written \
      completely or not at all, and never in place of another image's, unless that is gone.

      A journal in the output directory (.image-worker/journal.jsonl) lists what is finished. Run the same command \
      again to resume a batch that was stopped or killed: images whose file and options have not changed, and whose \
      results are there, are skipped.

      With --to, images are sent to workers. The images of a worker that is lost, full or shutting down go to others; \
      at the end, so do those of a slow one. Results are the same as without it.

      A failed image is reported and does not stop the others. Failed images are listed in \
      .image-worker/failures.jsonl, which --manifest accepts. Files in a folder that are not images, and whose names \
      are not those of images, are ignored. On a terminal, one line shows the progress, and failures are listed at the \
      end. The last lines are a summary.

      On SIGINT or SIGTERM, images in progress finish and no new ones start; a second signal cancels the images in \
      progress. The exit status is 0 if all images are done, 1 if images failed, 64 for wrong options, 69 if no worker \
      can be reached or none accepts this client, and 130 after a signal.
      """)

  struct OutputOptions: ParsableArguments {
    @Option(
      name: [.customShort("o"), .customLong("out")],
      help: ArgumentHelp("Write results to this directory; it is created if missing.", valueName: "directory"),
      completion: .directory)
    var output: String
    @Flag(help: "Forget what earlier runs finished, and process all images.")
    var fresh = false
    @Flag(help: "Skip images whose result exists already, whatever it was made from.")
    var skipExisting = false
    @Flag(help: "Write nothing; estimate bytes, time and memory from a sample of the images.")
    var dryRun = false
  }

  @OptionGroup(title: "Results")
  var target: OutputOptions
  @OptionGroup(title: "Images")
  var inputOptions: InputOptions
  @OptionGroup
  var results: ResultOptions
  @Option(
    help: ArgumentHelp(
      "Process this number of images at the same time. Default: the number of cores; 8 for each worker.",
      valueName: "count"))
  var jobs: Int?
  @Option(
    name: .customLong("memory-limit-mib"),
    help: ArgumentHelp("Limit the memory of all images together. Default: 768.", valueName: "MiB"))
  var memoryLimit: Int?
  @OptionGroup(title: "Workers")
  var remote: RemoteOptions
  @OptionGroup(title: "Report")
  var report: ReportOptions

  func validate() throws {
    if let jobs, !(1...1024).contains(jobs) {
      throw ValidationError("--jobs is \(jobs); it must be between 1 and 1024.")
    }
    if let memoryLimit, !(1...1_048_576).contains(memoryLimit) {
      throw ValidationError("--memory-limit-mib is \(memoryLimit); it must be between 1 and 1048576.")
    }
    if let option = memoryLimit == nil ? results.localOption : "--memory-limit-mib", !remote.workers.isEmpty {
      throw ValidationError("\(option) is for images that this process works on; it cannot be combined with --to.")
    }
    if report.traceOut != nil, !remote.workers.isEmpty {
      throw ValidationError("--trace-out shows the stages of this process; it cannot be combined with --to.")
    }
  }

  func run() async throws {
    let isRemote = !remote.workers.isEmpty
    try remote.check()
    let catalog = try PresetSource.catalog(path: results.presets)
    let requested = try results.requested(catalog, isRemote: isRemote)
    let directory = FilePath(text: target.output)
    var requests = BatchRequests(results, catalog, isRemote: isRemote)
    let images: [BatchImage]
    let skippedLinkCount: Int
    do {
      (images, skippedLinkCount) = try BatchInputs.images(
        in: try inputOptions.read(&requests), output: directory, suffixes: requested.suffixes)
    } catch let error as BatchInputError {
      throw ValidationError("\(error).")
    } catch let error as ManifestError { throw ValidationError("\(error)") }
    let output = BatchOutput(
      directory: directory, images: images, requested: requested, journal: try journal(of: directory),
      skipsExisting: target.skipExisting)
    do {
      if target.dryRun { return try await estimate(images, output) }
      let report = RunReport(
        imageCount: images.count, json: report.json, quiet: report.quiet, place: .directory(directory))
      report.noteSkippedLinks(skippedLinkCount)
      try await self.report.withTrace(output.destinations) { try await process(images, output, report, trace: $0) }
    } catch let error as ImageWorkerError {
      FileSystem.printError("Error: \(remote.text(of: error))")
      throw ExitStatus.unavailable.code
    }
  }

  /// The journal; `nil` for a dry run before the first run.
  private func journal(of directory: FilePath) throws -> BatchJournal? {
    if target.dryRun {
      if !BatchJournal.isThere(in: directory) { return nil }
      do { return try BatchJournal(directory: directory, for: .estimate) } catch let error as Errno {
        throw FileError("--out", target.output, "has a journal that cannot be read", "\(error)")
      }
    }
    try FileSystem.makeDirectory(directory, option: "--out")
    do { return try BatchJournal(directory: directory, for: .run(isFresh: target.fresh)) } catch let error as Errno {
      throw FileError("--out", target.output, "cannot be written", "\(error)")
    }
  }

  private var memoryByteCount: Int { (memoryLimit ?? 768) << 20 }
  private var localJobs: Int { jobs ?? SystemInfo.coreCount }

  private func process(
    _ images: [BatchImage], _ output: BatchOutput, _ report: RunReport, trace: ChromeTrace?
  ) async throws {
    let stop = RunStop()
    var failures = try BatchFailures(directory: output.directory)
    try await report.run(isInterrupted: { stop.isStopped }) {
      let outcome: Result<Void, any Error>
      do {
        try await stop.watch { try await work(images, output, report, stop, trace) { try failures.add($0, $1) } }
        outcome = .success(())
      } catch { outcome = .failure(error) }
      // Also when the workers are lost: another run goes on from here.
      try output.journal?.sync()
      var isComplete = !stop.isStopped
      if case .failure = outcome { isComplete = false }
      try failures.write(isComplete: isComplete)
      try outcome.get()
    }
    if report.failedCount > 0, !self.report.json, !self.report.quiet {
      FileSystem.printError("failed images: \(failures.path); --manifest accepts this file")
    }
    if stop.isStopped { throw ExitStatus.interrupted.code }
    if report.failedCount > 0 { throw ExitStatus.failure.code }
  }

  /// - `note`: gets the outcomes of each image that is processed, in one task.
  private func work(
    _ images: [BatchImage], _ output: BatchOutput, _ report: RunReport, _ stop: RunStop, _ trace: ChromeTrace?,
    note: (BatchImage, [ResultLine]) throws -> Void
  ) async throws {
    var waiting: [BatchImage] = []
    for image in images {
      if stop.isStopped { return }
      guard let lines = output.finished(image) else {
        var image = image
        if image.problem == nil, image.row?.output == nil, !target.skipExisting {
          image.problem = output.journal?.owner(ofPlaceOf: image).map { .nameTaken(by: $0) }
        }
        waiting.append(image)
        continue
      }
      try note(image, lines)
      try report.note(lines)
    }
    func noteEnd(of image: BatchImage, _ lines: [ResultLine]) throws {
      // A second signal cancels the images in progress, which have not failed; the next run processes them.
      if stop.cancellation.isCancelled, lines.contains(where: { $0.reason == "CANCELLED" }) { return }
      try note(image, lines)
      try report.note(lines)
    }
    if remote.workers.isEmpty {
      let memory = MemoryBudget(limit: memoryByteCount, maxWaiting: localJobs)
      let run = BatchRun(output: output, stop: stop, jobs: localJobs, memory: memory, trace: trace)
      try await run.process(waiting, note: noteEnd)
    } else if !waiting.isEmpty {
      let client = try remote.client
      report.observe { client.statuses }
      let run = RemoteRun(client: client, output: output, stop: stop, jobs: jobs) { error in
        report.warn("\(remote.text(of: error)); trying again (--give-up-seconds \(remote.giveUpSeconds))")
      }
      try await run.process(waiting, note: noteEnd)
    }
  }

  private func estimate(_ images: [BatchImage], _ output: BatchOutput) async throws {
    let waiting = images.filter { image in
      !(!target.fresh && output.finished(image) != nil || target.skipExisting && output.existing(image) != nil)
    }
    let finishedCount = images.count - waiting.count
    let estimate: BatchEstimate
    if remote.workers.isEmpty {
      let sample = BatchSample(waiting, finishedCount: finishedCount, output: output, jobs: localJobs)
      estimate = await sample.estimate(jobs: localJobs, memoryLimit: UInt64(memoryByteCount))
    } else {
      let client = try remote.client
      let options = RemoteRun.options(jobs: jobs, connectionCount: client.statuses.count)
      let sample = BatchSample(
        waiting, finishedCount: finishedCount, output: output, jobs: options.window * client.statuses.count)
      estimate = try await client.running {
        try await RemotePresets.check(output.foreignPresets(of: waiting), on: client)
        return try await sample.estimate(on: client, options: options)
      }
    }
    try FileSystem.printLine(report.json ? JSONText.line(["estimate": estimate]) : estimate.text)
  }
}
