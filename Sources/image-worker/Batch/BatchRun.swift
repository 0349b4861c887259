internal import ImagePipeline
internal import Synchronization
internal import SystemPackage
internal import UnixSignals
internal import WorkThreads

/// Pictures side by side: as many as there are threads, and as many as their memory has room for.
final class BatchRun: Sendable {
  private let configuration: ProcessingConfiguration
  private let directory: FilePath
  private let jobs: Int
  private let skipsExisting: Bool
  private let memory: MemoryBudget
  private let trace: StageTrace?
  private let executor: PictureExecutor
  private let cancellation = Cancellation()
  private let stopped = Atomic(false)
  private let destinations: Destinations

  init(
    configuration: ProcessingConfiguration, directory: FilePath, destinations: Destinations, jobs: Int,
    skipsExisting: Bool, memory: MemoryBudget, trace: StageTrace?
  ) {
    self.configuration = configuration
    self.destinations = destinations
    self.directory = directory
    self.jobs = jobs
    self.skipsExisting = skipsExisting
    self.memory = memory
    self.trace = trace
    executor = PictureExecutor(threadCount: jobs, niceness: 0)
  }

  /// A signal came before every picture was begun.
  var isStopped: Bool { stopped.load(ordering: .acquiring) }

  /// Processes them all, or until a signal; `note` is told of each as it ends, in one task.
  /// - Throws: what `note` throws; what is under way then is given up.
  func process(_ pictures: [BatchPicture], note: (BatchLine) throws -> Void) async throws -> BatchCounts {
    try await withThrowingTaskGroup(of: Void.self) { watchers in
      let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
      watchers.addTask { [self] in
        for await _ in signals {
          let isSecond = stopped.exchange(true, ordering: .acquiringAndReleasing)
          if isSecond { cancellation.cancel() }
        }
      }
      defer { watchers.cancelAll() }
      return try await work(pictures, note: note)
    }
  }

  private func work(_ pictures: [BatchPicture], note: (BatchLine) throws -> Void) async throws -> BatchCounts {
    try await withThrowingTaskGroup(of: BatchLine.self) { group in
      var counts = BatchCounts()
      var waiting = pictures[...]
      func begin() {
        guard !isStopped, let picture = waiting.popFirst() else { return }
        group.addTask(executorPreference: executor) { [self] in await process(picture) }
      }
      for _ in 0..<jobs { begin() }
      do {
        while let line = try await group.next() {
          begin()
          counts.add(line.status)
          try note(line)
        }
      } catch {
        cancellation.cancel()
        throw error
      }
      // A signal that came when nothing was left to begin has stopped nothing.
      if waiting.isEmpty, !cancellation.isCancelled { stopped.store(false, ordering: .releasing) }
      return counts
    }
  }

  private func process(_ picture: BatchPicture) async -> BatchLine {
    do {
      let file = ImageFile(path: picture.path)
      let plan = try file.plan(configuration)
      let destination = try destination(of: picture, plan)
      if skipsExisting, FileSystem.isThere(destination) { return BatchLine(picture, .skipped, output: destination) }
      let reservation = try await memory.reserve(Int(clamping: plan.workingSetByteCount), cancellation: cancellation)
      let began = ContinuousClock.now
      let tracing = TraceTarget(observer: trace?.observer(picture: picture.path.string))
      let report = try FileSystem.replacing(destination, isDurable: true) {
        try file.process(configuration, cancellation: cancellation, tracing: tracing, into: $0)
      }
      trace?.note("picture", of: picture.path.string, from: began, to: .now)
      _ = consume reservation
      return BatchLine(picture, report, output: destination)
    } catch { return BatchLine(picture, error) }
  }

  /// Where the result goes; its folder is made.
  private func destination(of picture: BatchPicture, _ plan: Plan) throws -> FilePath {
    var folder = directory
    for component in picture.folder.components {
      folder.append(component)
      try FileSystem.makeDirectory(folder)
    }
    let destination = folder.appending("\(picture.name).\(plan.fileExtension)")
    try destinations.claim(destination, for: picture.path)
    return destination
  }
}
