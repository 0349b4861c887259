import Admission
import CoreMetrics
import Foundation
import ImageCodecs
import ImagePipeline
import InMemoryTracing
import Logging
import ResultCache
import Synchronization
import TestSupport
import Testing
import Tracing

@testable import WorkerService

@Suite("ImageJob", .timeLimit(.minutes(15)))
struct ImageJobTests {
  private static let photo = Fixture.bytes("photo-420.jpg")

  private static func rendition(isPreviewed: Bool = false) -> Rendition {
    Rendition(
      index: nil, id: "", configuration: ProcessingConfiguration(maxWidth: 100), isPreviewed: isPreviewed)
  }

  private static func renditions(_ widths: [Int]) -> [Rendition] {
    widths.enumerated().map {
      Rendition(index: $0, id: "\($1)", configuration: ProcessingConfiguration(maxWidth: $1))
    }
  }

  /// One job with its environment.
  private struct Run {
    let environment: WorkerEnvironment
    let sink = RecordingSink()
    let admission: RecordingAdmission
    let cancellation = Cancellation()

    init(_ environment: WorkerEnvironment) {
      self.environment = environment
      admission = RecordingAdmission(memory: environment.memory)
    }

    func process(_ source: any ImageSource, _ renditions: [Rendition] = [ImageJobTests.rendition()]) async throws {
      let job = PreviewedJob(
        renditions, from: source, to: sink, admission: admission, environment: environment,
        cancellation: cancellation)
      try await job.run()
    }
  }

  private func environment(cached: Bool = false, memoryLimit: Int = 64 << 20) throws -> WorkerEnvironment {
    let cache = cached ? try ResultCache(limits: CacheLimits(), logger: Logger(label: "test")) : nil
    return WorkerEnvironment(cache: cache, memoryLimit: memoryLimit, threadCount: 1)
  }

  @Test("returns the same result for a complete image and for portions of any size", arguments: [1, 7, 4096, 1 << 20])
  func portions(byteCount: Int) async throws {
    let environment = try environment()
    let (whole, cut) = (Run(environment), Run(environment))
    try await whole.process(WholeImage(Data(Self.photo)))
    try await cut.process(PortionedSource(Self.photo, byteCount: byteCount))
    for run in [whole, cut] {
      #expect(run.sink.kinds.first == "header" && run.sink.kinds.last == "report")
      #expect(run.sink.kinds.filter { $0 != "chunk" }.count == 2)
      #expect(try Pixels.decode(Array(run.sink.bytes)).layout[0].width == 100)
    }
    #expect(whole.sink.bytes == cut.sink.bytes)
    #expect(environment.memory.used == 0 && environment.memory.buffered == 0)
  }

  @Test("of images that a caller sends at once, no more begin than its CPU time lasts for")
  func quota() async throws {
    let policy = CallerPolicy(name: "a", quotas: [CallerQuota(.cpuSeconds, per: .hour, amount: 1e-6)])
    let environment = WorkerEnvironment(threadCount: 1).with {
      $0.callers = CallerAccounts([policy], metrics: NOOPMetricsHandler.instance)
      $0.callerName = { _ in "a" }
    }
    let doneCount = try await ServiceContext.withValue(.topLevel) {
      try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<60 {
          group.addTask {
            do { try await Run(environment).process(WholeImage(Data(Self.photo))) } catch is CallerError { return 0 }
            return 1
          }
        }
        return try await group.reduce(0, +)
      }
    }
    #expect(doneCount == 1)
  }

  @Test("requests the memory of its plan and its source's buffer once, and is refused before a part is sent")
  func admission() async throws {
    let roomy = Run(try environment())
    try await roomy.process(PortionedSource(Self.photo, byteCount: 999, bufferedByteCount: 0))
    let need = try #require(roomy.admission.byteCounts.first)
    let buffering = Run(try environment(memoryLimit: need + 999))
    await #expect(throws: PipelineError.self) {
      try await buffering.process(PortionedSource(Self.photo, byteCount: 999, bufferedByteCount: 1000))
    }
    #expect(roomy.admission.byteCounts.count == 1 && buffering.admission.byteCounts == [need + 1000])
    #expect(buffering.sink.parts.isEmpty && buffering.environment.memory.used == 0)
  }

  @Test("throws the errors of its source, its sink and the image")
  func errors() async throws {
    struct Gone: Error {}
    let environment = try environment()
    let source = PortionedSource(Array(Self.photo.prefix(3000)), byteCount: 500)
    source.failure = Gone()
    await #expect(throws: Gone.self) { try await Run(environment).process(source) }
    let closed = Run(environment)
    closed.sink.onPart = { _ in throw Gone() }
    await #expect(throws: Gone.self) { try await closed.process(WholeImage(Data(Self.photo))) }
    let cut = Run(environment)
    let error = await #expect(throws: PipelineError.self) {
      try await cut.process(PortionedSource(Array(Self.photo.prefix(3000)), byteCount: 500))
    }
    #expect(error?.code == .truncatedImage && cut.sink.kinds.last != "report")
    #expect(environment.memory.used == 0)
  }

  @Test("encodes at most about 512 KiB ahead of its sink, even if all rows arrive at once")
  func backPressure() async throws {
    let noise = try encodedImage(noiseSamples(800 * 600 * 3), width: 800, height: 600, pixelFormat: .rgb8)
    let progressive = ProcessingConfiguration(preferredFormat: .jpeg, jpeg: JPEGOptions(isProgressive: true))
    let image = try TestSupport.process(noise, progressive).bytes
    let run = Run(try environment())
    let configuration = ProcessingConfiguration(preferredFormat: .png, png: PNGOptions(compressionLevel: 0))
    try await run.process(WholeImage(Data(image)), [Rendition(index: nil, id: "", configuration: configuration)])
    // Chunks that are known to follow immediately were encoded before the sink accepted this part.
    var (ahead, maxAhead) = (0, 0)
    for part in run.sink.parts {
      guard case .chunk(let bytes) = part.content else { continue }
      ahead += bytes.count
      maxAhead = max(maxAhead, ahead)
      if !part.isMoreReady { ahead = 0 }
    }
    #expect(run.sink.bytes.count > 1 << 20 && maxAhead < 1 << 20, "\(maxAhead) of \(run.sink.bytes.count) bytes")
    #expect(try run.sink.bytes == Data(TestSupport.process(image, configuration).bytes))
    #expect(run.environment.memory.used == 0)
  }

  /// Blocks a thread until it is opened.
  private final class Gate: Sendable {
    let busyCount = Atomic(0)
    let isOpen = Atomic(false)
  }

  @Test("reports how long it waited for a thread, and is refused if too many wait")
  func threads() async throws {
    var limits = WorkerLimits.defaults
    limits.maxWaitingImages = 1
    let environment = WorkerEnvironment(limits: limits, memoryLimit: 64 << 20, threadCount: 1)
    let gate = Gate()
    try await withThrowingTaskGroup(of: Void.self) { group in
      defer { gate.isOpen.store(true, ordering: .releasing) }
      for executor in [environment.executor, environment.expressExecutor] {
        group.addTask(executorPreference: executor) {
          gate.busyCount.add(1, ordering: .releasing)
          while !gate.isOpen.load(ordering: .acquiring) { usleep(1000) }
        }
      }
      try await waitUntil("the threads are busy") { gate.busyCount.load(ordering: .acquiring) == 2 }
      group.addTask {
        let run = Run(environment)
        try await run.process(WholeImage(Data(Self.photo)))
        let timings = try #require(run.sink.reports.first).processing.timings
        #expect(timings.queued >= .milliseconds(50) && timings.total >= timings.queued)
      }
      try await waitUntil("an image waits") { environment.threadQueue.waitingCount == 1 }
      let refused = Run(environment)
      let error = await #expect(throws: PipelineError.self) { try await refused.process(WholeImage(Data(Self.photo))) }
      #expect(error?.code == .overloaded && refused.sink.parts.isEmpty)
      try await Task.sleep(for: .milliseconds(60))
      gate.isOpen.store(true, ordering: .releasing)
      try await group.waitForAll()
    }
    #expect(environment.threadQueue.waitingCount == 0)
  }

  @Test("learns what an image costs from its CPU time, however long its threads waited for a processor")
  func cost() async throws {
    let pause = Duration.milliseconds(300)
    // Spans of stages start in the midst of the work.
    let ids = InMemoryTracer.IDGenerator(
      nextTraceID: { "trace" },
      nextSpanID: {
        usleep(UInt32(pause / .microseconds(1)))
        return "span"
      })
    let environment = WorkerEnvironment(memoryLimit: 64 << 20, threadCount: 1)
    let worked = Mutex(Duration.zero)
    var measured = environment
    measured.tracer = InMemoryTracer(idGenerator: ids)
    measured.worked = { duration, _ in worked.withLock { $0 += duration } }
    try await Run(measured).process(WholeImage(Data(Self.photo)))
    let image = ImageClaim(Data(Self.photo).bytes)
    let cost = environment.threadQueue.costs.estimate(
      of: image, [Self.rendition().configuration], for: ImageCaller().connection)
    #expect(worked.withLock { $0 } >= pause && cost.duration < pause)
  }

  @Test("stops at the next window once it is cancelled")
  func cancellation() async throws {
    let run = Run(try environment())
    run.sink.onPart = { [cancellation = run.cancellation] _ in cancellation.cancel() }
    let error = await #expect(throws: PipelineError.self) {
      try await run.process(PortionedSource(Self.photo, byteCount: 100))
    }
    #expect(error == .cancelled && run.sink.kinds == ["header"] && run.environment.memory.used == 0)
  }

  @Test("sends the failure of one of several renditions, and continues with the others")
  func failedRendition() async throws {
    let run = Run(try environment())
    let bad = Rendition(
      index: 1, id: "bad",
      configuration: ProcessingConfiguration(crop: Crop(unit: .pixels, x: 9999, y: 0, width: 9, height: 9)))
    try await run.process(WholeImage(Data(Self.photo)), Self.renditions([50]) + [bad])
    let failed = run.sink.parts.filter { $0.rendition.id == "bad" }
    #expect(failed.count == 1 && failed.first?.isLast == true)
    #expect(run.sink.reports.count == 1 && run.sink.reports[0].processing.output.size.width == 50)
  }

  @Test("delivers cached results of the same renditions without reserving memory")
  func cache() async throws {
    let environment = try environment(cached: true)
    let (first, again, some, one) = (Run(environment), Run(environment), Run(environment), Run(environment))
    try await first.process(WholeImage(Data(Self.photo)), Self.renditions([60, 70]))
    try await again.process(WholeImage(Data(Self.photo)), Self.renditions([70, 60]))
    // The scale of decoding depends on all of them.
    try await some.process(WholeImage(Data(Self.photo)), Self.renditions([60, 80]))
    try await one.process(WholeImage(Data(Self.photo)), Self.renditions([60]))
    #expect(first.sink.reports.map(\.isCacheHit) == [false, false] && first.admission.byteCounts.count == 1)
    #expect(again.sink.reports.map(\.isCacheHit) == [true, true] && again.admission.byteCounts.isEmpty)
    #expect(some.sink.reports.map(\.isCacheHit) == [false, false] && some.admission.byteCounts.count == 1)
    #expect(one.sink.reports.map(\.isCacheHit) == [false])
    let (made, kept) = (first.sink.reports[0].processing, again.sink.reports[1].processing)
    #expect(kept.input == made.input && kept.output == made.output && kept.outputByteCount == made.outputByteCount)
    #expect(kept.compressionQuality == made.compressionQuality && kept.timings.decode == .zero)
  }

  @Test("does not decode an upload that was complete on admission and has a cached result")
  func completeUpload() async throws {
    let environment = try environment(cached: true)
    let (whole, open, complete) = (Run(environment), Run(environment), Run(environment))
    try await whole.process(WholeImage(Data(Self.photo)))
    for run in [open, complete] {
      // All bytes arrive in one portion, and the end of the upload only later.
      let source = PortionedSource(Self.photo, byteCount: Self.photo.count)
      if run.sink === complete.sink { run.admission.onReserve = { source.isComplete = true } }
      try await run.process(source)
      #expect(run.sink.bytes == whole.sink.bytes && run.admission.byteCounts.count == 1)
    }
    #expect(open.sink.reports.map(\.isCacheHit) == [false] && complete.sink.reports.map(\.isCacheHit) == [true])
    #expect(environment.memory.used == 0)
  }

  @Test("sends a preview before the result without changing the result")
  func preview() async throws {
    let environment = try environment()
    let (plain, previewed) = (Run(environment), Run(environment))
    try await plain.process(PortionedSource(Self.photo, byteCount: 500))
    try await previewed.process(PortionedSource(Self.photo, byteCount: 500), [Self.rendition(isPreviewed: true)])
    let kinds = previewed.sink.kinds
    #expect(kinds.first == "~header" && kinds.filter { $0 != "~chunk" && $0 != "chunk" }.count == 4)
    #expect(try #require(kinds.firstIndex(of: "header")) > #require(kinds.firstIndex(of: "~report")))
    #expect(previewed.sink.bytes == plain.sink.bytes)
    #expect(previewed.admission.byteCounts[0] > plain.admission.byteCounts[0])
    #expect(environment.memory.used == 0 && environment.memory.buffered == 0)
  }

  @Test("the preview of an image in one message is that of the same image in portions")
  func wholePreview() async throws {
    let environment = try environment()
    let noise = Array("P6 500 400 255\n".utf8) + noiseSamples(500 * 400 * 3)
    let runs = [Run(environment), Run(environment)]
    try await runs[0].process(WholeImage(Data(noise)), [Self.rendition(isPreviewed: true)])
    try await runs[1].process(PortionedSource(noise, byteCount: 5000), [Self.rendition(isPreviewed: true)])
    let previews = runs.map { run in
      run.sink.parts.filter(\.rendition.isPreview).reduce(into: Data()) { bytes, part in
        if case .chunk(let chunk) = part.content { bytes += chunk }
      }
    }
    #expect(previews[0] == previews[1] && !previews[0].isEmpty)
  }

  @Test("the wait for memory is part of the reported wait, of the preview as of the image")
  func waitForMemory() async throws {
    let run = Run(try environment())
    run.admission.onReserve = { usleep(60_000) }
    try await run.process(PortionedSource(Self.photo, byteCount: 500), [Self.rendition(isPreviewed: true)])
    #expect(run.sink.reports.count == 2)
    for report in run.sink.reports { #expect(report.processing.timings.queued >= .milliseconds(60)) }
  }
}
