import Fields
import ImagePipeline
import TestSupport
import Testing

@testable import WorkerService

@Suite("Messages of helpers")
struct HelperMessageTests {
  private struct OtherMessage: Error {}

  private static let configuration = ProcessingConfiguration(
    maxWidth: 12, compressionQuality: 0.25, preferredFormat: .webp, focusPoint: Point(x: 0.5, y: 0.25),
    maxBytes: 1 << 40, filters: [Filter(name: "blur", intensity: 0.5, parameters: ["radius": 3])])

  private static func read(_ request: HelperRequest) throws -> (HelperRequest.Work, WorkRequest.Planning) {
    var last: EncodedConfiguration?
    let message = HelperRequest.read(request.bytes(work: 9), defaults: ImageLimits(), last: &last)
    let (read, number) = try #require(message)
    guard case .work(let work) = read, case .readHeader(let planning) = work.request, number == 9 else {
      throw OtherMessage()
    }
    return (work, planning)
  }

  @Test("what is planned is read as it was written")
  func planning() throws {
    let configurations = [Self.configuration, ProcessingConfiguration()]
    let written = WorkRequest.Planning(
      results: .renditions(configurations), followingByteCount: 7, lateOrientation: 6, admittedByteCount: 1 << 40,
      renditionIDs: ["a", ""])
    let request = HelperRequest.Work(request: .readHeader(written), input: 3..<9, isLast: true, start: nil)
    let (work, planning) = try Self.read(.work(request))
    guard case .renditions(configurations) = planning.results else { throw OtherMessage() }
    #expect(planning.followingByteCount == 7 && planning.admittedByteCount == 1 << 40)
    #expect(planning.renditionIDs == ["a", ""] && planning.lateOrientation == 6)
    #expect(work.input == 3..<9 && work.isLast && work.start == nil)
  }

  @Test("a preview is read as it was written")
  func preview() throws {
    let written = WorkRequest.Planning(results: .preview(Self.configuration, maxSide: 0))
    let request = HelperRequest.Work(request: .readHeader(written), input: 0..<0, isLast: false, start: nil)
    let (work, planning) = try Self.read(.work(request))
    guard case .preview(Self.configuration, maxSide: 0) = planning.results else {
      throw OtherMessage()
    }
    #expect(planning.followingByteCount == nil && planning.lateOrientation == nil)
    #expect(planning.admittedByteCount == 0 && !work.isLast)
  }

  @Test("limits are read as they were written")
  func limits() throws {
    var limits = ImageLimits(
      maxPixels: 1, maxBufferedPixels: 2, maxScans: 3, maxAnimationFrames: 7, maxAnimationPixels: 8, maxWorkPixels: 4,
      memory: 5, frameMemory: 6)
    let planning = WorkRequest.Planning(results: .renditions([Self.configuration]))
    let cases: [(Duration?, Bool)] = [(nil, false), (.milliseconds(2500), true)]
    for (time, recordsSpans) in cases {
      limits.maxCPUTime = time
      let request = HelperRequest.Work(
        request: .readHeader(planning), input: 0..<6, isLast: true,
        start: HelperRequest.ImageStart(limits: limits, recordsSpans: recordsSpans))
      let start = try #require(Self.read(.work(request)).0.start)
      #expect(start.limits == limits && start.recordsSpans == recordsSpans)
    }
  }

  @Test("a response is read as it was written")
  func response() throws {
    let info = ImageInfo(
      format: "jpeg", size: PixelSize(width: 3, height: 4), orientation: 6, hasAlpha: true, bitDepth: 16,
      colorSpace: "rgb", frameCount: 2, duration: .milliseconds(1234), playCount: 0)
    var timings = StageTimings()
    (timings.decode, timings.encode) = (.nanoseconds(1_234_567_891), .nanoseconds(5))
    let report = ProcessingReport(
      input: info, output: info, inputByteCount: 1, outputByteCount: 2, timings: timings, peakMemoryByteCount: 3,
      warnings: [Warning(nil, "of another version"), .damaged(row: 1, height: 2)],
      compressionQuality: 0.5, isPassedThrough: true)
    var error = PipelineError(exceeding: "max_pixels", limit: 1, value: 2, unit: "pixels")
    error.neededByteCount = 0
    error.field = "crop"
    var response = HelperResponse()
    (response.isPartial, response.error, response.work.consumedByteCount, response.work.isPaused) = (
      true, error, 7, true
    )
    response.work.plan = PlannedImage(
      renditions: [
        .success(PlannedResult(input: info, output: info, decodedByteCount: 8, warnings: report.warnings)),
        .failure(error),
      ],
      workingSetByteCount: 9, reservedByteCount: 10)
    response.segments = [HelperResponse.Segment(rendition: 1, byteCount: 70_000)]
    response.work.ends = [(0, .success(report)), (1, .failure(error))]
    response.spans = [
      RecordedSpan(
        name: "decode", began: 1, ended: 2,
        attributes: ["a": .integer(-1), "b": .flag(false), "c": .number(0.5), "d": .text("")], error: "no")
    ]
    response.work.isStarted = true
    let read = try #require(HelperResponse(response.bytes))
    #expect(read.work.isStarted)
    #expect(read.bytes.count == response.bytes.count)
    #expect(read.isPartial && read.work.isPaused && read.error == error && read.work.consumedByteCount == 7)
    #expect(try read.work.plan?.renditions.first?.get() == response.work.plan?.renditions.first?.get())
    #expect(read.work.plan?.reservedByteCount == 10)
    #expect(read.segments == response.segments && read.spans.first?.attributes == response.spans.first?.attributes)
    #expect(try read.work.ends.first?.outcome.get() == report && read.work.ends.last?.index == 1)
  }

  @Test("bytes of a hostile helper are read without harm", arguments: [UInt64](0..<8))
  func hostile(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var response = HelperResponse()
    response.error = PipelineError(.overloaded, "text")
    response.work.plan = PlannedImage(renditions: [.failure(.cancelled)], workingSetByteCount: 1, reservedByteCount: 2)
    response.segments = [HelperResponse.Segment(rendition: 1, byteCount: 2)]
    let valid = response.bytes
    for _ in 0..<2000 {
      var bytes = valid
      for _ in 0..<Int.random(in: 1...6, using: &generator) {
        bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
      }
      _ = HelperResponse(Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &generator))))
    }
    #expect(HelperResponse([0xFF]) == nil)
  }

  @Test("other bytes than those of a field value are refused")
  func fieldValues() {
    let bytes = Self.configuration.fieldValue.canonicalBytes
    #expect(FieldValue(canonicalBytes: bytes) == Self.configuration.fieldValue)
    for count in 0..<bytes.count { #expect(FieldValue(canonicalBytes: Array(bytes.prefix(count))) == nil) }
    #expect(FieldValue(canonicalBytes: bytes + [0]) == nil)
    let nested = Array(repeating: [UInt8](arrayLiteral: 5, 1, 0, 0, 0, 0, 0, 0, 0), count: 100).flatMap(\.self)
    #expect(FieldValue(canonicalBytes: nested + [0, 1]) == nil)
  }
}
