internal import Admission
internal import ImagePipeline
internal import SystemPackage
internal import WorkThreads
internal import WorkerTelemetry

/// Images side by side in this process: as many as there are threads, and as many as their memory has room for.
struct BatchRun: Sendable {
  private let output: BatchOutput
  private let stop: RunStop
  private let jobs: Int
  private let memory: MemoryBudget
  private let trace: ChromeTrace?
  private let executor: ImageExecutor

  init(output: BatchOutput, stop: RunStop, jobs: Int, memory: MemoryBudget, trace: ChromeTrace?) {
    self.output = output
    self.stop = stop
    self.jobs = jobs
    self.memory = memory
    self.trace = trace
    executor = ImageExecutor(threadCount: jobs, niceness: 0)
  }

  /// Processes them all, or until a signal; `note` gets the outcomes of each as it ends, in one task.
  /// - Throws: what `note` throws; images in progress are then cancelled.
  func process(_ images: [BatchImage], note: (BatchImage, [ResultLine]) throws -> Void) async throws {
    try await withThrowingTaskGroup(of: (BatchImage, [ResultLine]).self) { group in
      var waiting = images[...]
      func begin() {
        guard !stop.isStopped, let image = waiting.popFirst() else { return }
        group.addTask(executorPreference: executor) { [self] in (image, await process(image)) }
      }
      for _ in 0..<jobs { begin() }
      do {
        while let (image, lines) = try await group.next() {
          begin()
          try note(image, lines)
        }
      } catch {
        stop.cancellation.cancel()
        throw error
      }
      if waiting.isEmpty { stop.noteCompletion() }
    }
  }

  private func process(_ image: BatchImage) async -> [ResultLine] {
    let requested = output.requested(of: image)
    let version = FileSystem.version(of: image.path)
    var lines: [ResultLine]
    do {
      if let problem = image.problem { throw problem }
      let local = LocalImage(
        file: ImageFile(path: image.path), place: .directory(try output.folders.prepare(image.folder)),
        name: image.name, requested: requested, destinations: output.destinations, skipsExisting: output.skipsExisting,
        isDurable: true)
      let written = try await local.run(cancellation: stop.cancellation, trace: trace) {
        try await memory.reserve(Int(clamping: $0), cancellation: stop.cancellation)
      }
      lines = written.map { ResultLine(image, $0, requested) }
    } catch { lines = [ResultLine(image, error)] }
    do { try output.note(image, version, lines) } catch { lines.append(ResultLine(image, error)) }
    return lines
  }
}
