internal import ImagePipeline
internal import ImageWorkerClient
internal import SystemPackage
internal import WorkerProtocol
internal import WorkThreads

/// Images on one or several workers, over gRPC.
struct RemoteRun: Sendable {
  /// Results that are written at the same time.
  private static let writerCount = 4
  /// A worker is reported if it could not be reached for so long.
  private static let warningDelay = Duration.seconds(1)
  /// After a signal, a run ends if no image was in flight for so many of these delays.
  private static let maxIdleCount = 3

  private let client: Client
  private let output: BatchOutput
  private let stop: RunStop
  private let options: BatchOptions
  private let warn: @Sendable (ImageWorkerError) -> Void
  private let executor = ImageExecutor(threadCount: writerCount, niceness: 0)

  /// - `jobs`: images in flight on all workers together; `nil` for as many as suit them.
  /// - `warn`: gets the error of each worker that cannot be reached, once.
  init(
    client: Client, output: BatchOutput, stop: RunStop, jobs: Int?, warn: @escaping @Sendable (ImageWorkerError) -> Void
  ) {
    self.client = client
    self.output = output
    self.stop = stop
    self.warn = warn
    options = Self.options(jobs: jobs, connectionCount: client.statuses.count)
  }

  static func options(jobs: Int?, connectionCount: Int) -> BatchOptions {
    var options = BatchOptions()
    options.isSpeculative = true
    if let jobs {
      options.streams = min(jobs, connectionCount)
      options.window = max(1, jobs / connectionCount)
    }
    return options
  }

  /// Processes them all, or until a signal; `note` gets the outcomes of each as it ends, in one task.
  /// - Throws: what `note` throws, or an error of all workers.
  func process(_ images: [BatchImage], note: (BatchImage, [ResultLine]) throws -> Void) async throws {
    var notedCount = 0
    do {
      try await connected {
        try await RemotePresets.check(output.foreignPresets(of: images), on: client)
        try await work(images) { image, lines in
          notedCount += 1
          try note(image, lines)
        }
      }
    } catch  where stop.cancellation.isCancelled {
      // A second signal closes the connections.
      return
    }
    if notedCount == images.count { stop.noteCompletion() }
  }

  /// Runs the client while `body` uses it, or until a second signal.
  private func connected(_ body: () async throws -> Void) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      let (cancelled, continuation) = AsyncStream<Void>.makeStream()
      let registration = stop.cancellation.addHandler { continuation.finish() }
      defer { stop.cancellation.removeHandler(registration) }
      group.addTask {
        await withTaskGroup(of: Void.self) { running in
          running.addTask { await client.run() }
          running.addTask { for await _ in cancelled {} }
          await running.next()
          running.cancelAll()
        }
      }
      group.addTask { await watchWorkers() }
      defer {
        client.close()
        group.cancelAll()
      }
      try await body()
    }
  }

  /// Reports each worker that cannot be reached, so that a batch which waits is not silent.
  ///
  /// After a signal, nothing can finish if none can be reached.
  private func watchWorkers() async {
    var (failing, reported): (Set<String>, Set<String>) = ([], [])
    var idleCount = 0
    while (try? await Task.sleep(for: Self.warningDelay)) != nil {
      let isIdle = client.statuses.allSatisfy { $0.itemsInFlight == 0 }
      idleCount = stop.isStopped && isIdle ? idleCount + 1 : 0
      if idleCount > 0, idleCount >= Self.maxIdleCount || client.statuses.allSatisfy({ $0.error != nil }) {
        stop.cancellation.cancel()
      }
      let failed = client.statuses.filter { $0.error != nil && $0.itemsDone == 0 }
      for status in failed where failing.contains(status.address) {
        if let error = status.error, reported.insert(status.address).inserted { warn(error) }
      }
      failing = Set(failed.map(\.address))
    }
  }

  private func work(_ images: [BatchImage], note: (BatchImage, [ResultLine]) throws -> Void) async throws {
    var waiting: [BatchImage] = []
    for image in images {
      if stop.isStopped { return }
      if let problem = image.problem {
        try note(image, [ResultLine(image, problem)])
      } else if output.skipsExisting, let lines = output.existing(image) {
        try note(image, lines)
      } else {
        waiting.append(image)
      }
    }
    let items = Items(images: waiting, output: output, stop: stop)
    try await withThrowingTaskGroup(of: (BatchImage, [ResultLine]).self) { group in
      var writing = 0
      for try await result in client.batch(items, options: options) {
        if writing == Self.writerCount, let (image, lines) = try await group.next() {
          writing -= 1
          try note(image, lines)
        }
        writing += 1
        group.addTask(executorPreference: executor) { [output] in
          (result.key.image, RemoteImage(result: result, output: output).write())
        }
      }
      for try await (image, lines) in group { try note(image, lines) }
    }
  }

  /// The items of the batch, until a signal.
  private struct Items: AsyncSequence, Sendable {
    let images: [BatchImage]
    let output: BatchOutput
    let stop: RunStop

    struct Iterator: AsyncIteratorProtocol {
      var images: ArraySlice<BatchImage>
      let output: BatchOutput
      let stop: RunStop

      mutating func next() async throws -> Item<RemoteImage.Key>? {
        if stop.isStopped { return nil }
        return try images.popFirst().map { try RemoteImage.item($0, output.requested(of: $0)) }
      }
    }

    func makeAsyncIterator() -> Iterator { Iterator(images: images[...], output: output, stop: stop) }
  }
}

/// The presets of workers that a batch asks for by name.
enum RemotePresets {
  private static let timeout = Duration.seconds(10)

  /// Checks once, before the first image, that a worker has the presets.
  ///
  /// Nothing is checked if no worker can be reached now; the batch has its own timeout for that.
  /// - Throws: `PipelineError` with the presets that there are, or an error of a worker that refuses this client.
  static func check(_ names: Set<String>, on client: Client) async throws {
    if names.isEmpty { return }
    let known: [String]
    do { known = try await client.presets(timeout: timeout).map(\.name) } catch let error as ImageWorkerError {
      if error.isRetryable || error.kind == .deadline { return }
      throw error
    }
    guard let missing = names.sorted().first(where: { !known.contains($0) }) else { return }
    throw PresetCatalog.unknown(missing, names: known)
  }
}
