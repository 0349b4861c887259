internal import ImagePipeline
internal import Synchronization
internal import SystemPackage
internal import UnixSignals
internal import WorkThreads

/// Images side by side: as many as there are threads, and as many as their memory has room for.
final class BatchRun: Sendable {
  private let requested: RequestedResults
  private let directory: FilePath
  private let jobs: Int
  private let skipsExisting: Bool
  private let memory: MemoryBudget
  private let trace: StageTrace?
  private let executor: ImageExecutor
  private let cancellation = Cancellation()
  private let stopped = Atomic(false)
  private let destinations: Destinations

  init(
    requested: RequestedResults, directory: FilePath, destinations: Destinations, jobs: Int,
    skipsExisting: Bool, memory: MemoryBudget, trace: StageTrace?
  ) {
    self.requested = requested
    self.destinations = destinations
    self.directory = directory
    self.jobs = jobs
    self.skipsExisting = skipsExisting
    self.memory = memory
    self.trace = trace
    executor = ImageExecutor(threadCount: jobs, niceness: 0)
  }

  /// A signal came before every image was begun.
  var isStopped: Bool { stopped.load(ordering: .acquiring) }

  /// Processes them all, or until a signal; `note` gets the outcomes of each as it ends, in one task.
  /// - Throws: what `note` throws; images in progress are then cancelled.
  func process(_ images: [BatchImage], note: ([ResultLine]) throws -> Void) async throws {
    try await withThrowingTaskGroup(of: Void.self) { watchers in
      let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
      watchers.addTask { [self] in
        for await _ in signals {
          let isSecond = stopped.exchange(true, ordering: .acquiringAndReleasing)
          if isSecond { cancellation.cancel() }
        }
      }
      defer { watchers.cancelAll() }
      try await work(images, note: note)
    }
  }

  private func work(_ images: [BatchImage], note: ([ResultLine]) throws -> Void) async throws {
    try await withThrowingTaskGroup(of: [ResultLine].self) { group in
      var waiting = images[...]
      func begin() {
        guard !isStopped, let image = waiting.popFirst() else { return }
        group.addTask(executorPreference: executor) { [self] in await process(image) }
      }
      for _ in 0..<jobs { begin() }
      do {
        while let lines = try await group.next() {
          begin()
          try note(lines)
        }
      } catch {
        cancellation.cancel()
        throw error
      }
      // A signal that came when nothing was left to begin has stopped nothing.
      if waiting.isEmpty, !cancellation.isCancelled { stopped.store(false, ordering: .releasing) }
    }
  }

  private func process(_ image: BatchImage) async -> [ResultLine] {
    do {
      if let problem = image.problem { throw problem }
      let local = LocalImage(
        path: image.path, directory: try folder(of: image), name: image.name, requested: requested,
        destinations: destinations, skipsExisting: skipsExisting, isDurable: true)
      let written = try await local.run(cancellation: cancellation, trace: trace) {
        try await memory.reserve(Int(clamping: $0), cancellation: cancellation)
      }
      return written.map { ResultLine(image, $0, requested) }
    } catch { return [ResultLine(image, error)] }
  }

  /// Where the results go; the folder is made.
  private func folder(of image: BatchImage) throws -> FilePath {
    var folder = directory
    for component in image.folder.components {
      folder.append(component)
      try FileSystem.makeDirectory(folder)
    }
    return folder
  }
}
