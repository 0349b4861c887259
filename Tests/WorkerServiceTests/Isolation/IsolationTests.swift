import Admission
import Foundation
import GRPCCore
import ImagePipeline
import InMemoryTracing
import SwiftProtobuf
import TestSupport
import Testing
import Tracing
import WorkerIsolation
import WorkerProtocol

@testable import WorkerService

@Suite("Isolation in processes", .enabled(if: Isolated.isSupported, Isolated.absence), .serialized)
struct IsolationTests {
  private static let configurations: [@Sendable (inout Imageworker_V1_ProcessingConfiguration) -> Void] = [
    { _ in },
    {
      $0.maxWidth = 90
      $0.maxHeight = 60
      $0.compressionQuality = 0.8
      $0.filters = [
        .with {
          $0.name = "sepia"
          $0.intensity = 0.5
        }
      ]
    },
    {
      $0.maxWidth = 50
      $0.preferredFormat = .webp
      $0.rotation = 90
      $0.alwaysEncode = true
    },
  ]

  /// The parts of a result that do not depend on time.
  private static func outcome(
    _ client: Client, _ bytes: [UInt8], _ change: (inout Imageworker_V1_ProcessingConfiguration) -> Void
  ) async -> [String] {
    do {
      let result = try await client.process(bytes, change)
      var report = result.report
      report?.clearTimings()
      var options = JSONEncodingOptions()
      options.useDeterministicOrdering = true
      let header = try result.header?.jsonString() ?? ""
      return [header, try report?.jsonString(options: options) ?? "", Data(result.bytes).base64EncodedString()]
        + result.parts
    } catch { return ["\(error)"] }
  }

  @Test("every result, report and error is that of a worker without isolation")
  func identity() async throws {
    try await withWorker { direct, _ in
      try await withWorker(helpers: Isolated.pool()) { isolated, environment in
        for name in Fixture.names {
          let bytes = Fixture.bytes(name)
          for change in Self.configurations {
            let expected = await Self.outcome(direct, bytes, change)
            #expect(await Self.outcome(isolated, bytes, change) == expected, "\(name)")
          }
          var inspection = Imageworker_V1_InspectImageRequest()
          inspection.image = Data(bytes)
          inspection.configuration.scaleFactor = 2
          let inspected = try await isolated.inspectImage(inspection)
          #expect(try await inspected == direct.inspectImage(inspection), "\(name)")
          #expect(inspected.warningDetails.first?.code == .scaleFactorIgnored)
          let cut = Array(bytes.prefix(bytes.count / 2))
          let expected = await Self.outcome(direct, cut, Self.configurations[0])
          #expect(await Self.outcome(isolated, cut, Self.configurations[0]) == expected, "half of \(name)")
        }
        #expect(environment.helpers?.lostCount == 0 && environment.memory.used == 0 && environment.memory.buffered == 0)
      }
    }
  }

  @Test("large results and inputs pass the channel in parts")
  func largeImages() async throws {
    // Noise, which no compressor makes smaller.
    let samples = noiseSamples(1400 * 1100 * 3)
    let image = Array("P6 1400 1100 255\n".utf8) + samples
    let changes: [@Sendable (inout Imageworker_V1_ProcessingConfiguration) -> Void] = [
      { $0.preferredFormat = .png },
      { $0.maxWidth = 200 },
    ]
    #expect(image.count > HelperLayout.inputByteCount && samples.count > HelperLayout.outputByteCount)
    try await withWorker { direct, _ in
      try await withWorker(helpers: Isolated.pool()) { isolated, environment in
        for change in changes {
          // Headers, reports and bytes: chunks end where the worker paused.
          let expected = await Self.outcome(direct, image, change).prefix(3)
          #expect(expected.count == 3)
          #expect(await Self.outcome(isolated, image, change).prefix(3) == expected)
        }
        #expect(environment.helpers?.lostCount == 0)
      }
    }
  }

  @Test("a result that is larger than its image has the same warning")
  func largerResult() async throws {
    let noise = Array("P6 900 700 255\n".utf8) + noiseSamples(900 * 700 * 3)
    try await withWorker { direct, _ in
      try await withWorker(helpers: Isolated.pool()) { isolated, _ in
        let image = try await direct.process(noise) {
          $0.preferredFormat = .jpeg
          $0.compressionQuality = 0.95
          // All of it is decoded before the first row, so that output is left when the last byte is consumed.
          $0.jpeg = .with { $0.progressive = true }
        }.bytes
        let change: @Sendable (inout Imageworker_V1_ProcessingConfiguration) -> Void = {
          $0.compressionQuality = 1
          $0.alwaysEncode = true
        }
        let expected = try await direct.process(image, change)
        #expect((image.count..<2 * image.count).contains(expected.bytes.count))
        #expect(expected.report?.warningDetails.map(\.code) == [.largerThanImage])
        let report = try await isolated.process(image, change).report
        #expect(report?.warningDetails == expected.report?.warningDetails)
      }
    }
  }

  @Test(
    "an image starts with its header, in a helper or not, if it needs no more memory than is spare",
    arguments: [-1, 0, 1 << 20])
  func start(spareByteCount: Int) async throws {
    let bytes = Fixture.bytes("photo-420.jpg")
    let planning = WorkRequest.Planning(
      results: .renditions([ProcessingConfiguration(maxWidth: 64, preferredFormat: .png)]))
    func result(of work: ImageWork, _ consumed: Int) throws -> [Data] {
      #expect(consumed == bytes.count && work.isStarted)
      let chunks = work.results.takeOutput(of: 0)
      #expect(try work.results.takeEnd(of: 0)?.get().outputByteCount == UInt64(chunks.reduce(0) { $0 + $1.count }))
      #expect(work.hasEnded)
      return chunks
    }
    for isIsolated in [true, false] {
      let (pool, memory) = (Isolated.pool(), MemoryBudget(limit: 1 << 30, maxWaiting: 1))
      func work() async throws -> ImageWork {
        guard !isIsolated else { return try await Isolated.work(in: pool) }
        let server = ImageServer(limits: ImageLimits(), cancellation: Cancellation(), tracing: TraceTarget())
        return ImageWork(server, memory: memory)
      }
      let planned = try await work()
      let header = try planned.readHeader(bytes.span.bytes, isLast: true, planning)
      let plan = try #require(planned.plan)
      #expect(!planned.isStarted && header < bytes.count)
      let rest = bytes.span.bytes.extracting(droppingFirst: header)
      try planned.start(nil)
      let expected = try result(of: planned, header + planned.advance(rest, isLast: true))
      #expect(!expected.isEmpty)
      let started = try await work()
      var admitting = planning
      admitting.admittedByteCount = UInt64(Int(plan.reservedByteCount) + spareByteCount)
      let spare = memory.reserveSpare(Int(admitting.admittedByteCount))
      let consumed = try started.readHeader(bytes.span.bytes, isLast: true, admitting, spare: spare)
      #expect(started.isStarted == (spareByteCount >= 0))
      guard spareByteCount >= 0 else { continue }
      #expect(try result(of: started, consumed) == expected)
      #expect(memory.used == Int(plan.reservedByteCount))
    }
  }

  @Test("large progressive images use spill files that the worker opens for the helper")
  func spill() async throws {
    try await withWorker { direct, _ in
      try await withWorker(helpers: Isolated.pool()) { isolated, environment in
        let progressive = try await direct.process(Fixture.bytes("photo-420.jpg")) {
          $0.maxWidth = 4096
          $0.compressionQuality = 0.6
          $0.allowUpscale = true
          $0.preferredFormat = .jpeg
          $0.jpeg = .with { $0.progressive = true }
        }.bytes
        let padding = [UInt8](repeating: 0xAA, count: 16 << 20)
        let bytes = progressive.dropLast(2) + padding + progressive.suffix(2)
        let change: @Sendable (inout Imageworker_V1_ProcessingConfiguration) -> Void = { $0.maxWidth = 100 }
        let expected = await Self.outcome(direct, Array(bytes), change)
        #expect(expected.count > 3, "\(expected)")
        #expect(await Self.outcome(isolated, Array(bytes), change) == expected)
        #expect(environment.helpers?.lostCount == 0)
      }
    }
  }

  @Test("previews, renditions and inspections are those of a worker without isolation")
  func otherRequests() async throws {
    var request = Imageworker_V1_ProcessImageRequest()
    request.image = Data(Fixture.bytes("photo-420.jpg"))
    request.renditions = [.named("a") { $0.maxWidth = 100 }, .named("b") { $0.preferredFormat = .png }]
    var inspection = Imageworker_V1_InspectImageRequest()
    inspection.image = request.image
    var preview = Imageworker_V1_ProcessImageRequest()
    preview.image = request.image
    preview.preview = true
    try await withWorker { direct, _ in
      try await withWorker(helpers: Isolated.pool()) { isolated, environment in
        for request in [request, preview] {
          let expected = try await direct.processRenditions(request).mapValues(\.bytes)
          #expect(try await isolated.processRenditions(request).mapValues(\.bytes) == expected)
        }
        #expect(try await isolated.inspectImage(inspection) == direct.inspectImage(inspection))
        #expect(environment.helpers?.lostCount == 0)
      }
    }
  }

  @Test("the spans of stages are in the trace of the call")
  func spans() async throws {
    func spans(_ helpers: HelperPool?) async throws -> [String: Set<String>] {
      let tracer = InMemoryTracer()
      try await withWorker(tracer: tracer, helpers: helpers) { client, _ in
        _ = try await client.process(Fixture.bytes("photo-420.jpg"), preset: "favicon")
      }
      let stages = tracer.finishedSpans.filter { ["decode", "resize", "encode"].contains($0.operationName) }
      #expect(Set(stages.map(\.traceID)).count == 1)
      return Dictionary(
        stages.map { span in
          var keys = Set<String>()
          span.attributes.forEach { key, _ in keys.insert(key) }
          return (span.operationName, keys)
        }, uniquingKeysWith: { $0.union($1) })
    }
    let expected = try await spans(nil)
    #expect(expected.count == 3)
    #expect(try await spans(Isolated.pool()) == expected)
  }
}
