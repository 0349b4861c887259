import Admission
import CoreMetrics
import Foundation
import ImagePipeline
import Logging
import ResultCache
import SwiftProtobuf
import Synchronization
import TestSupport
import Testing
import WorkerProtocol

@testable import WorkerService

/// Returns a report such as the pipeline produces.
private func report() throws -> ResultReport {
  var reader = ImageReader(limits: ImageLimits())
  _ = try reader.push(Fixture.bytes("photo-420.jpg").span.bytes, isLast: true)
  let plan = try reader.plan(ProcessingConfiguration())
  let processing = ProcessingReport(
    input: plan.input, output: plan.outputInfo, inputByteCount: 9, outputByteCount: 3, timings: StageTimings(),
    peakMemoryByteCount: 7, warnings: [.damaged(row: 1, height: 2)],
    compressionQuality: 0.5)
  return ResultReport(processing: processing)
}

private let rendition = Rendition(
  index: nil, id: "", configuration: ProcessingConfiguration(maxWidth: 50), isPreviewed: true)

@Suite("JobCache, as a sink")
struct JobCacheTests {
  private static func sink(of cache: ResultCache, to next: any ResultSink) -> JobCache {
    let input = ImageInput(WholeImage(Data()), isHashed: true)
    return JobCache(
      cache, of: [rendition], from: input, to: next, metrics: WorkerMetrics(factory: NOOPMetricsHandler.instance),
      cancellation: Cancellation())
  }

  private func key(_ name: String) -> CacheKey { CacheKey(input: InputHasher(), configuration: Array(name.utf8)) }

  @Test("collects the chunks and the report of its renditions, and forwards everything")
  func collects() async throws {
    let cache = try ResultCache(limits: CacheLimits(), logger: Logger(label: "test"))
    let recorder = RecordingSink()
    let sink = Self.sink(of: cache, to: recorder)
    sink.entries[""] = JobCache.Entry(collector: cache.collector(), key: key("a"))
    let other = Rendition(index: 1, id: "other", configuration: ProcessingConfiguration())
    let report = try report()
    for part in [
      ResultPart(.chunk(Data([1])), of: rendition), ResultPart(.chunk(Data([8])), of: other),
      ResultPart(.chunk(Data([2, 3])), of: rendition),
    ] { try await sink.send(part) }
    #expect(cache.result(for: key("a")) == nil)
    try await sink.send(ResultPart(.report(report), of: rendition))
    let kept = try #require(cache.result(for: key("a")))
    #expect(kept.chunks == [[1], [2, 3]])
    let restored = try #require(ProcessingReport(wireBytes: kept.metadata))
    #expect(restored.output == report.processing.output && restored.warnings == report.processing.warnings)
    #expect(restored.peakMemoryByteCount == 0 && restored.compressionQuality == 0.5)
    #expect(recorder.kinds == ["chunk", "chunk", "chunk", "report"])
  }

  /// A caller that reads nothing until it is opened.
  private final class Gate: ResultSink, Sendable {
    private enum State { case idle, busy, open, over }

    private let state = Mutex(State.idle)
    var isBusy: Bool { state.withLock { $0 == .busy } }

    func open() { state.withLock { $0 = .open } }
    func end() { state.withLock { $0 = .over } }

    func waitForEnd() async throws {
      while state.withLock({ $0 != .over }) { try await Task.sleep(for: .milliseconds(1)) }
    }

    func send(_ part: ResultPart) async throws {
      state.withLock { if $0 == .idle { $0 = .busy } }
      while isBusy { try await Task.sleep(for: .milliseconds(1)) }
    }
  }

  /// Looks up a result, and stops to wait for it after some time, with an error.
  private static func lookUp(_ key: CacheKey, in cache: ResultCache) async throws -> ResultCache.Lookup {
    try await cache.lookUp(key) { stop in
      Task {
        try await Task.sleep(for: .seconds(30))
        stop()
      }
    }
  }

  @Test("others wait for a caller between its parts, but not while it does not read one")
  func sending() async throws {
    let cache = try ResultCache(limits: CacheLimits(), logger: Logger(label: "test"))
    let (key, gate) = (key("a"), Gate())
    guard case .lead(let collector) = try await Self.lookUp(key, in: cache) else {
      Issue.record("nobody else asks for the result")
      return
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      defer { group.cancelAll() }
      group.addTask {
        let sink = Self.sink(of: cache, to: gate)
        sink.entries[""] = JobCache.Entry(collector: collector, key: key)
        try await sink.send(ResultPart(.chunk(Data([1])), of: rendition))
        try await gate.waitForEnd()
        try await sink.send(ResultPart(.report(try report()), of: rendition))
      }
      try await waitUntil("a part is sent") { gate.isBusy }
      let early = try await Self.lookUp(key, in: cache)
      guard case .bypass = early else {
        Issue.record("the caller does not read: \(early)")
        return
      }
      gate.open()
      group.addTask {
        let late = try await Self.lookUp(key, in: cache)
        guard case .hit = late else {
          Issue.record("the caller has read all that there was: \(late)")
          return
        }
      }
      // Longer than others wait for one that does not read.
      try await Task.sleep(for: .seconds(3))
      gate.end()
      try await group.waitForAll()
    }
  }

  @Test("refuses a report from a file whose numbers cannot be added or multiplied")
  func implausible() throws {
    var good = Imageworker_V1_ProcessingReport()
    (good.input.width, good.input.height, good.inputBytes) = (1 << 20, 1 << 20, 1 << 40)
    #expect(try ProcessingReport(wireBytes: good.serializedBytes())?.input.size.width == 1 << 20)
    let changes: [(inout Imageworker_V1_ProcessingReport) -> Void] = [
      { $0.input.width = .max }, { $0.output.height = .max }, { $0.inputBytes = .max }, { $0.outputBytes = .max },
      { $0.peakMemoryBytes = .max },
    ]
    for change in changes {
      var report = good
      change(&report)
      let bytes: [UInt8] = try report.serializedBytes()
      #expect(ProcessingReport(wireBytes: bytes) == nil)
    }
  }

  @Test("keeps nothing of a result that failed, or whose key is not known")
  func failure() async throws {
    let cache = try ResultCache(limits: CacheLimits(), logger: Logger(label: "test"))
    let sink = Self.sink(of: cache, to: RecordingSink())
    sink.entries = [
      "": JobCache.Entry(collector: cache.collector(), key: key("a")),
      "late": JobCache.Entry(collector: cache.collector(), key: nil),
    ]
    let late = Rendition(index: 0, id: "late", configuration: ProcessingConfiguration())
    try await sink.send(ResultPart(.chunk(Data([1])), of: rendition))
    try await sink.send(ResultPart(.failure(PipelineError.cancelled), of: rendition))
    try await sink.send(ResultPart(.report(try report()), of: late))
    #expect(cache.result(for: key("a")) == nil && cache.result(for: key("late")) == nil)
    sink.entries["late"]?.collector.keep(as: key("late"))
    #expect(cache.result(for: key("late")) != nil)
  }
}

@Suite("PreviewFirstSink")
struct PreviewFirstSinkTests {
  private static let photo = Data(Fixture.bytes("photo-420.jpg"))

  private let environment = WorkerEnvironment(memoryLimit: 64 << 20, threadCount: 1)
  private let recorder = RecordingSink()

  private func previewed(
    _ cancellation: Cancellation = Cancellation()
  ) throws -> (preview: PreviewJob, sink: PreviewFirstSink) {
    let preview = PreviewJob(
      try #require(rendition.preview), of: PortionedSource([], byteCount: 1), environment: environment,
      caller: ImageCaller(), cancellation: cancellation)
    let sink = PreviewFirstSink(recorder, after: preview, environment: environment, cancellation: cancellation)
    return (preview, sink)
  }

  private func chunk(_ number: UInt8) -> ResultPart { ResultPart(.chunk(Data([number])), of: rendition) }
  private func header() throws -> ResultPart { ResultPart(.header(try report().processing.output), of: rendition) }

  @Test("buffers a result's parts, charged to the budget, until the preview has ended")
  func order() async throws {
    let (preview, sink) = try previewed()
    sink.supplyHeader(Self.photo.prefix(9000), isLast: false)
    #expect(try #require(preview.plannedByteCount) > 0 && recorder.parts.isEmpty)
    try await sink.send(header())
    try await sink.send(chunk(1))
    try await sink.send(chunk(2))
    #expect(!recorder.kinds.contains("header") && !recorder.kinds.contains("chunk") && environment.memory.buffered > 0)
    try await sink.push(Self.photo.dropFirst(9000), isLast: true)
    try await sink.send(chunk(3))
    #expect(recorder.kinds.first == "~header" && recorder.kinds.filter { $0 == "~report" }.count == 1)
    #expect(recorder.kinds.suffix(5) == ["~report", "header", "chunk", "chunk", "chunk"])
    #expect(recorder.bytes == Data([1, 2, 3]) && environment.memory.buffered == 0)
  }

  @Test("charges what the reader of a preview buffers")
  func bufferedHeader() throws {
    let (preview, sink) = try previewed()
    sink.supplyHeader(Data(paddedImage(byteCount: 1 << 20).prefix(600_000)), isLast: false)
    #expect(!preview.hasEnded && environment.memory.buffered >= 600_000)
    preview.end()
    #expect(environment.memory.buffered == 0)
  }

  @Test("a preview that has started does not make room")
  func started() async throws {
    let (preview, sink) = try previewed()
    sink.supplyHeader(Self.photo.prefix(9000), isLast: false)
    try await sink.send(header())
    #expect(preview.isStarted && !sink.makeRoom(after: .cancelled) && !preview.hasEnded)
  }

  @Test("sends nothing of a job that was cancelled")
  func cancelled() async throws {
    let cancellation = Cancellation()
    let (complete, failed) = (try previewed(cancellation), try previewed(cancellation))
    for sink in [complete.sink, failed.sink] {
      sink.supplyHeader(Self.photo.prefix(9000), isLast: false)
      try await sink.send(header())
      try await sink.send(chunk(1))
    }
    let count = recorder.parts.count
    cancellation.cancel()
    let report = ResultPart(.report(try report()), of: rendition)
    await #expect(throws: PipelineError.cancelled) { try await complete.sink.send(report) }
    await failed.sink.abandon(after: .cancelled)
    #expect(recorder.parts.count == count && failed.preview.hasEnded && environment.memory.used == 0)
  }

  @Test("forwards the parts of a result whose preview received no bytes")
  func notBegun() async throws {
    let (_, sink) = try previewed()
    for part in [try header(), chunk(1), ResultPart(.report(try report()), of: rendition)] { try await sink.send(part) }
    #expect(recorder.kinds == ["header", "chunk", "report"])
  }

  @Test("ends the preview when the result is complete or cannot be buffered")
  func ended() async throws {
    let complete = try previewed()
    complete.sink.supplyHeader(Self.photo.prefix(9000), isLast: false)
    try await complete.sink.send(chunk(1))
    #expect(recorder.parts.isEmpty)
    try await complete.sink.send(ResultPart(.report(try report()), of: rendition))
    #expect(recorder.kinds == ["chunk", "report"] && complete.preview.hasEnded)
    let full = try previewed()
    full.sink.supplyHeader(Self.photo.prefix(9000), isLast: false)
    var others = Hold(budget: environment.memory)
    try others.grow(to: environment.memory.reservationLimit)
    try await full.sink.send(chunk(2))
    #expect(recorder.kinds == ["chunk", "report", "chunk"] && full.preview.hasEnded)
    others.release()
    try await full.sink.send(chunk(3))
    #expect(recorder.bytes == Data([1, 2, 3]))
  }

  @Test("leaves a preview out that is broken, of use no more, or in the way")
  func leftOut() async throws {
    let broken = try previewed()
    broken.sink.supplyHeader(Data("no image".utf8), isLast: false)
    try await broken.sink.send(chunk(1))
    try await broken.sink.push(Data(", only words".utf8), isLast: true)
    try await broken.sink.send(chunk(2))
    #expect(recorder.bytes == Data([1, 2]) && broken.preview.hasEnded)
    let late = try previewed()
    late.sink.supplyHeader(Self.photo.prefix(9000), isLast: false)
    #expect(late.preview.plannedByteCount != nil)
    try await late.sink.push(Self.photo.dropFirst(9000), isLast: true)
    #expect(late.preview.hasEnded)
    let large = try previewed()
    #expect(!large.sink.makeRoom(after: .cancelled))
    large.sink.supplyHeader(Self.photo.prefix(9000), isLast: false)
    #expect(large.sink.makeRoom(after: .cancelled) && !large.sink.makeRoom(after: .cancelled))
    #expect(recorder.kinds == ["chunk", "chunk"])
  }

  @Test("sends the finished parts of a failing result only if its preview was started")
  func abandoned() async throws {
    let unstarted = try previewed()
    unstarted.sink.supplyHeader(Self.photo.prefix(9), isLast: false)
    try await unstarted.sink.send(chunk(1))
    await unstarted.sink.abandon(after: .cancelled)
    #expect(recorder.parts.isEmpty)
    let started = try previewed()
    started.sink.supplyHeader(Self.photo.prefix(9000), isLast: false)
    try await started.sink.send(header())
    try await started.sink.send(chunk(2))
    await started.sink.abandon(after: .cancelled)
    #expect(recorder.bytes == Data([2]) && recorder.kinds.suffix(2) == ["header", "chunk"])
  }
}
