import Foundation
import ImagePipeline
import Logging
import ResultCache
import SwiftProtobuf
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
    peakMemoryByteCount: 7, warnings: ["w"], compressionQuality: 0.5)
  return ResultReport(processing: processing)
}

private let rendition = Rendition(
  index: nil, id: "", configuration: ProcessingConfiguration(maxWidth: 50), isPreviewed: true)

@Suite("CachingSink")
struct CachingSinkTests {
  private func key(_ name: String) -> CacheKey { CacheKey(input: InputHasher(), configuration: Array(name.utf8)) }

  @Test("collects the chunks and the report of its renditions, not of a preview, and passes everything on")
  func collects() async throws {
    let cache = try ResultCache(limits: CacheLimits(), logger: Logger(label: "test"))
    let recorder = RecordingSink()
    let sink = CachingSink(recorder)
    sink.entries[""] = CachingSink.Entry(collector: cache.collector(), key: key("a"))
    let preview = try #require(rendition.preview)
    let other = Rendition(index: 1, id: "other", configuration: ProcessingConfiguration())
    let report = try report()
    for part in [
      ResultPart(.chunk(Data([9])), of: preview), ResultPart(.report(report), of: preview),
      ResultPart(.chunk(Data([1])), of: rendition), ResultPart(.chunk(Data([8])), of: other),
      ResultPart(.chunk(Data([2, 3])), of: rendition),
    ] { try await sink.send(part) }
    #expect(cache.result(for: key("a")) == nil)
    try await sink.send(ResultPart(.report(report), of: rendition))
    let kept = try #require(cache.result(for: key("a")))
    #expect(kept.chunks == [[1], [2, 3]])
    let restored = try ProcessingReport(cacheMetadata: kept.metadata)
    #expect(restored.output == report.processing.output && restored.warnings == ["w"])
    #expect(restored.peakMemoryByteCount == 0 && restored.compressionQuality == 0.5)
    #expect(recorder.kinds == ["~chunk", "~report", "chunk", "chunk", "chunk", "report"])
  }

  @Test("refuses a report from a file whose numbers cannot be added or multiplied")
  func implausible() throws {
    var good = Imageworker_V1_ProcessingReport()
    (good.input.width, good.input.height, good.inputBytes) = (1 << 20, 1 << 20, 1 << 40)
    #expect(try ProcessingReport(cacheMetadata: good.serializedBytes()).input.size.width == 1 << 20)
    let changes: [(inout Imageworker_V1_ProcessingReport) -> Void] = [
      { $0.input.width = .max }, { $0.output.height = .max }, { $0.inputBytes = .max }, { $0.outputBytes = .max },
      { $0.peakMemoryBytes = .max },
    ]
    for change in changes {
      var report = good
      change(&report)
      let bytes: [UInt8] = try report.serializedBytes()
      #expect(throws: ImplausibleReport.self) { try ProcessingReport(cacheMetadata: bytes) }
    }
  }

  @Test("keeps nothing of a result that failed, or whose key is not known")
  func failure() async throws {
    let cache = try ResultCache(limits: CacheLimits(), logger: Logger(label: "test"))
    let sink = CachingSink(RecordingSink())
    sink.entries = [
      "": CachingSink.Entry(collector: cache.collector(), key: key("a")),
      "late": CachingSink.Entry(collector: cache.collector(), key: nil),
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
  private let environment = WorkerEnvironment(memoryLimit: 64 << 20, threadCount: 1)
  private let recorder = RecordingSink()

  private func sink() throws -> PreviewFirstSink {
    PreviewFirstSink(
      recorder, preview: try #require(rendition.preview), environment: environment, cancellation: Cancellation())
  }

  private func chunk(_ number: UInt8) -> ResultPart { ResultPart(.chunk(Data([number])), of: rendition) }

  @Test("buffers a result's parts, charged to the budget, until the preview has ended")
  func order() async throws {
    let sink = try sink()
    try await sink.push(Data(Fixture.bytes("photo-420.jpg")), isLast: true)
    #expect(try #require(sink.plannedByteCount) > 0)
    try await sink.send(chunk(1))
    try await sink.send(chunk(2))
    #expect(recorder.parts.isEmpty && environment.memory.buffered > 0)
    try await sink.start(JobClock())
    try await sink.send(chunk(3))
    #expect(recorder.kinds.first == "~header" && recorder.kinds.filter { $0 == "~report" }.count == 1)
    #expect(recorder.kinds.suffix(4) == ["~report", "chunk", "chunk", "chunk"] && recorder.bytes == Data([1, 2, 3]))
    #expect(environment.memory.buffered == 0)
  }

  @Test("ends the preview when the result is complete or cannot be buffered")
  func ended() async throws {
    let complete = try sink()
    try await complete.send(chunk(1))
    try await complete.send(ResultPart(.report(try report()), of: rendition))
    #expect(recorder.kinds == ["chunk", "report"])
    let full = try sink()
    var others = Hold(budget: environment.memory)
    try others.grow(to: environment.memory.reservationLimit)
    try await full.send(chunk(2))
    #expect(recorder.kinds == ["chunk", "report", "chunk"])
    others.release()
    try await full.send(chunk(3))
    #expect(recorder.bytes == Data([1, 2, 3]))
  }

  @Test("leaves a preview out that is broken, of use no more, or in the way")
  func leftOut() async throws {
    let broken = try sink()
    try await broken.send(chunk(1))
    try await broken.push(Data("no image, only words".utf8), isLast: true)
    #expect(recorder.bytes == Data([1]) && broken.plannedByteCount == nil)
    let late = try sink()
    try await late.push(Data(Fixture.bytes("photo-420.jpg").prefix(9000)), isLast: false)
    #expect(late.plannedByteCount != nil)
    try await late.push(Data(Fixture.bytes("photo-420.jpg").dropFirst(9000)), isLast: true)
    #expect(late.plannedByteCount == nil)
    let large = try sink()
    #expect(large.makeRoom(after: .cancelled) && !large.makeRoom(after: .cancelled))
    #expect(recorder.kinds == ["chunk"])
  }

  @Test("sends the finished parts of a failing result only if its preview was started")
  func abandoned() async throws {
    let unstarted = try sink()
    try await unstarted.send(chunk(1))
    await unstarted.abandon(after: .cancelled)
    #expect(recorder.parts.isEmpty)
    let started = try sink()
    try await started.push(Data(Fixture.bytes("photo-420.jpg").prefix(9000)), isLast: false)
    try await started.start(JobClock())
    try await started.send(chunk(2))
    await started.abandon(after: .cancelled)
    #expect(recorder.bytes == Data([2]) && recorder.kinds.last == "chunk")
  }
}
