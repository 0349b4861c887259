import Fields
import ImagePipeline
import TestSupport
import Testing

@testable import WorkerService

@Suite("Messages of helpers")
struct HelperMessageTests {
  private static let configuration = ProcessingConfiguration(
    maxWidth: 12, compressionQuality: 0.25, preferredFormat: .webp, focusPoint: Point(x: 0.5, y: 0.25),
    maxBytes: 1 << 40, filters: [Filter(name: "blur", intensity: 0.5, parameters: ["radius": 3])])

  @Test("a configuration is read as it was written")
  func configuration() throws {
    let request = HelperRequest.plan(
      [Self.configuration, ProcessingConfiguration()], followingByteCount: 7)
    var last: EncodedConfiguration?
    let message = HelperRequest.read(request.bytes(work: 9), defaults: ImageLimits(), last: &last)
    let (read, work) = try #require(message)
    guard case .plan(let configurations, let followingByteCount) = read else {
      Issue.record("another request was read")
      return
    }
    #expect(work == 9 && configurations == [Self.configuration, ProcessingConfiguration()])
    #expect(followingByteCount == 7)
  }

  @Test("limits are read as they were written")
  func limits() throws {
    var limits = ImageLimits(maxPixels: 1, maxBufferedPixels: 2, maxScans: 3, maxWorkPixels: 4, memory: 5)
    var last: EncodedConfiguration?
    let planning = HelperRequest.Planning(
      configurations: [Self.configuration], beyondByteCount: 7,
      admittedByteCount: 1 << 40, renditionIDs: ["a", ""])
    let cases: [(Duration?, Bool)] = [(nil, false), (.milliseconds(2500), true)]
    for (time, recordsSpans) in cases {
      limits.maxCPUTime = time
      let request = HelperRequest.readHeader(
        byteCount: 6, isLast: true, start: HelperRequest.ImageStart(limits: limits, recordsSpans: recordsSpans),
        planning: planning)
      let message = HelperRequest.read(request.bytes(work: 1), defaults: limits, last: &last)
      let read = try #require(message).request
      guard case .readHeader(6, true, let start?, planning) = read else {
        Issue.record("another request was read")
        return
      }
      #expect(start.limits == limits && start.recordsSpans == recordsSpans)
    }
  }

  @Test("a response is read as it was written")
  func response() throws {
    let info = ImageInfo(
      format: "jpeg", size: PixelSize(width: 3, height: 4), orientation: 6, hasAlpha: true, bitDepth: 16,
      colorSpace: "rgb", frameCount: 2)
    var timings = StageTimings()
    (timings.decode, timings.encode) = (.nanoseconds(1_234_567_891), .nanoseconds(5))
    let report = ProcessingReport(
      input: info, output: info, inputByteCount: 1, outputByteCount: 2, timings: timings, peakMemoryByteCount: 3,
      warnings: [ReportedWarning(nil, "of another version"), Warning.damaged(row: 1, height: 2).reported],
      compressionQuality: 0.5, isPassedThrough: true)
    var error = PipelineError(exceeding: "max_pixels", limit: 1, value: 2, unit: "pixels")
    error.neededByteCount = 0
    error.field = "crop"
    var response = HelperResponse()
    (response.isPartial, response.error, response.consumedByteCount, response.isPaused) = (true, error, 0, true)
    response.plan = PlannedImage(
      renditions: [
        .success(PlannedResult(input: info, output: info, decodedByteCount: 8, warnings: report.warnings)),
        .failure(error),
      ],
      workingSetByteCount: 9, reservedByteCount: 10)
    response.segments = [HelperResponse.Segment(rendition: 1, byteCount: 70_000)]
    response.outcomes = [(0, .success(report)), (1, .failure(error))]
    response.spans = [
      RecordedSpan(
        name: "decode", began: 1, ended: 2,
        attributes: ["a": .integer(-1), "b": .flag(false), "c": .number(0.5), "d": .text("")], error: "no")
    ]
    response.advancedByteCount = 0
    let read = try #require(HelperResponse(response.bytes))
    #expect(read.advancedByteCount == 0)
    #expect(read.bytes.count == response.bytes.count)
    #expect(read.isPartial && read.isPaused && read.error == error && read.consumedByteCount == 0)
    #expect(try read.plan?.renditions.first?.get() == response.plan?.renditions.first?.get())
    #expect(read.plan?.reservedByteCount == 10)
    #expect(read.segments == response.segments && read.spans.first?.attributes == response.spans.first?.attributes)
    #expect(try read.outcomes.first?.outcome.get() == report && read.outcomes.last?.index == 1)
  }

  @Test("bytes of a hostile helper are read without harm", arguments: [UInt64](0..<8))
  func hostile(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var response = HelperResponse()
    response.error = PipelineError(.overloaded, "text")
    response.plan = PlannedImage(renditions: [.failure(.cancelled)], workingSetByteCount: 1, reservedByteCount: 2)
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
