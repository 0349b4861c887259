import Admission
import Foundation
import GRPCCore
import ImagePipeline
import Logging
import ResultCache
import SwiftProtobuf
import TestSupport
import Testing
import WorkerProtocol
import WorkerService

@Suite("Cached results")
struct CacheTests {
  private static func cache() throws -> ResultCache {
    try ResultCache(limits: CacheLimits(), logger: Logger(label: "test"))
  }

  @Test("the same image and configuration return the cached result")
  func hit() async throws {
    try await withWorker(cache: try Self.cache()) { client, environment in
      let bytes = Fixture.bytes("photo-420.jpg")
      let first = try await client.process(bytes, preset: "favicon")
      let second = try await client.process(bytes, preset: "favicon")
      #expect(first.report?.cacheHit == false && second.report?.cacheHit == true)
      #expect(second.bytes == first.bytes && second.header == first.header && second.largestChunk <= 65536)
      #expect(second.report?.input == first.report?.input && second.report?.outputBytes == first.report?.outputBytes)
      #expect(second.report?.hasTimings == true && second.report?.timings.decode == Google_Protobuf_Duration())
      #expect(second.parts.first == "header" && second.parts.last == "report")
      #expect(environment.memory.used == 0)
    }
  }

  struct Request: Sendable {
    var preset: String
    var configuration = Imageworker_V1_ProcessingConfiguration()
    var isHit: Bool
  }

  private static let tint = Imageworker_V1_ProcessingConfiguration.with {
    let filter = Imageworker_V1_Filter.with { filter in
      filter.name = "tint"
      filter.intensity = 1
      filter.parameters = ["red": 1, "green": 2, "blue": 3]
    }
    $0.filters = [filter]
  }

  @Test("presets are compared by their fields: another name is the same request, another field is not")
  func keys() async throws {
    let requests =
      [
        Request(preset: "compressedFavicon", isHit: false),
        Request(preset: "favicon", configuration: .with { $0.compressionQuality = 0.8 }, isHit: true),
        Request(preset: "favicon", isHit: false),
        Request(preset: "favicon", configuration: .with { $0.allowUpscale = true }, isHit: false),
        Request(preset: "favicon", configuration: Self.tint, isHit: false),
      ] + [Request](repeating: Request(preset: "favicon", configuration: Self.tint, isHit: true), count: 8)
    try await withWorker(cache: try Self.cache()) { client, _ in
      let bytes = Fixture.bytes("photo-420.jpg")
      for request in requests {
        let result = try await client.process(bytes, preset: request.preset) { $0 = request.configuration }
        #expect(result.report?.cacheHit == request.isHit, "\(request)")
      }
      let longer = try await client.process(bytes + [0], preset: "favicon")
      #expect(longer.report?.cacheHit == false)
    }
  }

  @Test("items of a batch find results, and chunked uploads leave them")
  func batch() async throws {
    try await withWorker(cache: try Self.cache()) { client, _ in
      for (index, name) in ["photo-420.jpg", "photo.png", "photo.webp", "photo.gif"].enumerated() {
        let bytes = Fixture.bytes(name)
        var requests: [Imageworker_V1_BatchProcessRequest] = [.start("a", preset: "preview")]
        for offset in stride(from: 0, to: bytes.count, by: 1000) {
          requests.append(.chunk("a", bytes[offset..<min(offset + 1000, bytes.count)]))
        }
        let chunked = try await client.batch(requests + [.end("a")])
        #expect(chunked["a"]?.report?.cacheHit == false, "\(name)")
        let whole = try await client.batch([.start("b", preset: "preview", image: bytes)])
        #expect(whole["b"]?.report?.cacheHit == true && whole["b"]?.bytes == chunked["a"]?.bytes, "\(name) \(index)")
        #expect(try await client.process(bytes, preset: "preview").report?.cacheHit == true, "\(name)")
      }
    }
  }

  @Test("an upload that is complete before decoding begins finds a result")
  func completeUpload() async throws {
    try await withWorker(cache: try Self.cache()) { client, environment in
      let bytes = Fixture.bytes("photo-420.jpg")
      let whole = try await client.process(bytes, preset: "favicon")
      let buffered = try await environment.memory.reserve(environment.memory.limit, cancellation: Cancellation())
      let (arrived, arrival) = AsyncStream.makeStream(of: Never.self)
      async let report = client.batchProcess { writer in
        // The response to "b" proves that all of "a" has arrived.
        let requests: [Imageworker_V1_BatchProcessRequest] = [
          .start("a", preset: "favicon"), .chunk("a", bytes), .end("a"), .end("b"),
        ]
        for request in requests { try await writer.write(request) }
      } onResponse: { response in
        var report: Imageworker_V1_ProcessingReport?
        var chunks: [UInt8] = []
        for try await message in response.messages {
          if message.itemID == "b" { arrival.finish() }
          if case .chunk(let chunk) = message.part { chunks += chunk }
          if case .report(let end) = message.part { report = end }
        }
        return (report, chunks)
      }
      for await _ in arrived {}
      _ = consume buffered
      let (found, chunks) = try await report
      #expect(found?.cacheHit == true && chunks == whole.bytes)
    }
  }

  @Test("errors are not kept")
  func errors() async throws {
    try await withWorker(cache: try Self.cache()) { client, environment in
      let cut = Array(Fixture.bytes("photo-420.jpg").prefix(3000))
      for _ in 0..<2 {
        let status = await failure { _ = try await client.process(cut, preset: "favicon") }
        #expect(status != nil)
      }
      #expect(environment.cache?.memoryByteCount == 0)
    }
  }

  @Test("concurrent equal requests are processed once, and every caller gets the result or the error")
  func concurrent() async throws {
    try await withWorker(cache: try Self.cache()) { client, environment in
      let good = Fixture.bytes("photo.png")
      let results = try await withThrowingTaskGroup(of: Collected.self) { group in
        for _ in 0..<16 { group.addTask { try await client.process(good, preset: "preview") } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(results.count == 16 && Set(results.map(\.bytes)).count == 1)
      #expect(results.count { $0.report?.cacheHit == false } == 1)
      let cut = Array(good.prefix(2000))
      await withTaskGroup(of: Bool.self) { group in
        for _ in 0..<16 { group.addTask { await failure { _ = try await client.process(cut) } != nil } }
        for await hasFailed in group { #expect(hasFailed) }
      }
      #expect(environment.memory.used == 0)
    }
  }
}
