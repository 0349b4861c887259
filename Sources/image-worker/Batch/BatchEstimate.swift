internal import FoundationEssentials
internal import ImagePipeline
internal import ImageWorkerClient
internal import Synchronization
internal import SystemPackage
internal import WorkThreads

/// An estimate of what a batch would read, write and take, from a sample of its images.
struct BatchEstimate: Sendable, Encodable {
  /// The number of images that are to be processed.
  var images: Int
  /// The number of images that earlier runs finished.
  var finished: Int
  /// The bytes of the images that are to be processed.
  var inputBytes: UInt64
  var outputBytes: UInt64
  var seconds: Double
  /// Maximum memory of the images in progress, without the program itself.
  var memoryBytes: UInt64
  /// The number of images that were processed for this.
  var sampleImages: Int
  /// The number of those that failed.
  var sampleFailed: Int

  /// Three lines, without a line end behind the last.
  var text: String {
    func count(_ images: Int) -> String { images == 1 ? "1 image" : "\(images) images" }
    let first =
      "\(count(images)) to process, \(ReadableText.byteCount(inputBytes)); \(finished) already finished"
    if sampleImages == sampleFailed { return first + (images > 0 ? "\nno image of the sample could be processed" : "") }
    return """
      \(first)
      about \(ReadableText.byteCount(outputBytes)) of results in \(ReadableText.clock(.seconds(seconds))), \
      with at most \(ReadableText.byteCount(memoryBytes)) of memory
      estimated from \(count(sampleImages))\(sampleFailed > 0 ? ", of which \(sampleFailed) failed" : "")
      """
  }
}

/// A sample of the images of a batch, processed without writing anything.
struct BatchSample: Sendable {
  /// The outcome of one image.
  struct Outcome: Sendable {
    var inputByteCount: UInt64
    var outputByteCount: UInt64
    /// The maximum memory that the image reserves.
    var memoryByteCount: UInt64
  }

  /// Images of the sample for each that is processed at the same time.
  private static let rounds = 8

  let output: BatchOutput
  /// Evenly spread over the batch.
  private let images: [BatchImage]
  private let inputByteCounts: [UInt64]
  private let finishedCount: Int

  /// - `jobs`: images that are processed at the same time.
  init(_ all: [BatchImage], finishedCount: Int, output: BatchOutput, jobs: Int) {
    self.output = output
    self.finishedCount = finishedCount
    let usable = all.filter { $0.problem == nil }
    inputByteCounts = usable.map { FileSystem.version(of: $0.path)?.byteCount ?? 0 }
    let step = max(1, (usable.count + Self.rounds * jobs - 1) / (Self.rounds * jobs))
    images = stride(from: 0, to: usable.count, by: step).map { usable[$0] }
  }

  /// Processes the sample in this process.
  func estimate(jobs: Int, memoryLimit: UInt64) async -> BatchEstimate {
    let executor = ImageExecutor(threadCount: jobs, niceness: 0)
    let began = ContinuousClock.now
    let outcomes = await withTaskGroup(of: Outcome?.self) { group in
      var waiting = images[...]
      func begin() {
        guard let image = waiting.popFirst() else { return }
        group.addTask(executorPreference: executor) { process(image) }
      }
      for _ in 0..<jobs { begin() }
      var outcomes: [Outcome?] = []
      while let outcome = await group.next() {
        begin()
        outcomes.append(outcome)
      }
      return outcomes
    }
    let elapsed = began.duration(to: .now)
    let memory = (outcomes.compactMap { $0?.memoryByteCount }.max() ?? 0) * UInt64(jobs)
    return estimate(outcomes, elapsed, memoryByteCount: min(memory, memoryLimit))
  }

  /// Processes the sample on workers.
  /// - Throws: an error of all workers.
  func estimate(on client: Client, options: BatchOptions) async throws -> BatchEstimate {
    let items = try images.map { try RemoteImage.item($0, output.requested(of: $0)) }
    var outcomes: [Outcome?] = []
    let began = ContinuousClock.now
    for try await result in client.batch(items, options: options) {
      let results = (try? result.outcomes.get().values.map { try $0.get() }) ?? []
      outcomes.append(
        results.isEmpty
          ? nil
          : Outcome(
            inputByteCount: result.key.version?.byteCount ?? 0,
            outputByteCount: results.reduce(0) { $0 + UInt64($1.data.count) },
            memoryByteCount: results.reduce(1 << 20) { $0 + UInt64($1.data.count) }))
    }
    let elapsed = began.duration(to: .now)
    let inFlight = UInt64((options.streams ?? client.statuses.count) * options.window)
    let largest = outcomes.compactMap { $0?.memoryByteCount }.max() ?? 0
    return estimate(outcomes, elapsed, memoryByteCount: largest * inFlight)
  }

  /// By the bytes of the images, as they tell most of the time and of the size of results.
  private func estimate(_ outcomes: [Outcome?], _ elapsed: Duration, memoryByteCount: UInt64) -> BatchEstimate {
    let known = outcomes.compactMap { $0 }
    let total = inputByteCounts.reduce(0, +)
    let sampled = known.reduce(0) { $0 + $1.inputByteCount }
    let scale = sampled > 0 ? Double(total) / Double(sampled) : 0
    return BatchEstimate(
      images: inputByteCounts.count, finished: finishedCount, inputBytes: total,
      outputBytes: UInt64((Double(known.reduce(0) { $0 + $1.outputByteCount }) * scale).rounded()),
      seconds: (elapsed / .seconds(1) * scale * 1000).rounded() / 1000, memoryBytes: memoryByteCount,
      sampleImages: outcomes.count, sampleFailed: outcomes.count - known.count)
  }

  private func process(_ image: BatchImage) -> Outcome? {
    let requested = output.requested(of: image)
    let file = ImageFile(path: image.path).with(requested.auxiliary, requested.limits)
    let request = ImageFile.Request.renditions(requested.results.map(\.configuration))
    var byteCount: UInt64 = 0
    guard let plan = try? file.plan(request),
      let outcomes = try? file.process(request, output: { byteCount += UInt64($1.byteCount) }),
      outcomes.contains(where: { if case .success = $0 { true } else { false } })
    else { return nil }
    return Outcome(
      inputByteCount: FileSystem.version(of: image.path)?.byteCount ?? 0, outputByteCount: byteCount,
      memoryByteCount: plan.workingSetByteCount)
  }
}
