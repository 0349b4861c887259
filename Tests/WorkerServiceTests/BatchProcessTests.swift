import Admission
import Foundation
import GRPCCore
import GRPCProtobuf
import ImageCodecs
import ImagePipeline
import SwiftProtobuf
import Synchronization
import TestSupport
import Testing
import WorkerProtocol
import WorkerService

@Suite("BatchProcess")
struct BatchProcessTests {
  @Test("processes interleaved complete and chunked uploads, each ended by one report")
  func interleaved() async throws {
    try await withWorker { client, environment in
      let (a, b) = (Fixture.bytes("photo-420.jpg"), Fixture.bytes("photo.png"))
      var requests: [Imageworker_V1_BatchProcessRequest] = [
        .start("a", preset: "favicon"), .start("whole", preset: "preview", image: a), .start("b") { $0.maxWidth = 30 },
      ]
      for index in 0..<max(a.count, b.count) / 500 + 1 {
        requests.append(.chunk("a", a.dropFirst(index * 500).prefix(500)))
        requests.append(.chunk("b", b.dropFirst(index * 500).prefix(500)))
      }
      requests += [.end("b"), .end("a")]
      let items = try await client.batch(requests)
      for (id, width) in [("a", 64), ("b", 30), ("whole", 240)] {
        let item = try #require(items[id])
        #expect(item.parts.first == "header" && item.parts.last == "report" && item.errors.isEmpty, "\(id)")
        #expect(item.parts.filter { $0 == "report" }.count == 1)
        #expect(try Pixels.decode(item.bytes).layout[0].width == width, "\(id)")
      }
      #expect(environment.memory.used == 0)
    }
  }

  @Test("an item's error affects only that item, and the stream continues")
  func ownErrors() async throws {
    try await withWorker { client, _ in
      let good = Fixture.bytes("photo-420.jpg")
      let items = try await client.batch([
        .start("preset", preset: "nope", image: good),
        .start("quality", image: good) { $0.compressionQuality = 1.5 },
        .start("empty"), .end("empty"),
        .start("words", image: Array("no image at all, just a few words".utf8)),
        .start("cut"), .chunk("cut", good.prefix(3000)), .end("cut"),
        .start("unended"), .chunk("unended", good.prefix(3000)),
        .chunk("stray", good), .chunk("stray", good), .end("stray"), .end("stray2"),
        .with { $0.itemID = "nothing" },
        .start("good", preset: "favicon", image: good),
      ])
      let expected: [String: (RPCError.Code, String)] = [
        "preset": (.invalidArgument, "UNKNOWN_PRESET"), "quality": (.invalidArgument, "INVALID_FIELD"),
        "empty": (.invalidArgument, "EMPTY_IMAGE"), "words": (.unimplemented, "UNKNOWN_FORMAT"),
        "cut": (.invalidArgument, "TRUNCATED_IMAGE"), "unended": (.invalidArgument, "TRUNCATED_IMAGE"),
        "stray": (.invalidArgument, "INVALID_FIELD"), "stray2": (.invalidArgument, "INVALID_FIELD"),
        "nothing": (.invalidArgument, "INVALID_FIELD"),
      ]
      for (id, (code, reason)) in expected {
        let errors = items[id]?.errors ?? []
        #expect(errors.count == 1, "\(id)")
        let status = try GoogleRPCStatus(serializedBytes: try #require(errors.first).serializedBytes() as [UInt8])
        #expect(status.code == code && status.details.first?.errorInfo?.reason == reason, "\(id): \(status.message)")
      }
      #expect(items["good"]?.report != nil && items["good"]?.errors.isEmpty == true)
    }
  }

  @Test("names the field of an item's configuration by its place in the start")
  func fieldPath() async throws {
    try await withWorker { client, _ in
      let items = try await client.batch([.start("a", image: [1]) { $0.maxWidth = 0 }])
      let error = try #require(items["a"]?.errors.first)
      let status = try GoogleRPCStatus(serializedBytes: error.serializedBytes() as [UInt8])
      #expect(status.details.compactMap(\.badRequest).first?.violations.first?.field == "start.configuration.max_width")
    }
  }

  @Test("a repeated item id is refused, without effect on a completed first item")
  func repeatedID() async throws {
    try await withWorker { client, _ in
      let good = Fixture.bytes("photo-420.jpg")
      let items = try await client.batch([
        .start("a", preset: "favicon", image: good), .start("a", preset: "favicon", image: good),
        .start("b", preset: "favicon"), .chunk("b", good.prefix(100)), .start("b", preset: "favicon"),
        .chunk("b", good.dropFirst(100)), .end("b"),
        .start("c", preset: "favicon", image: good),
      ])
      #expect(items["a"]?.report != nil && items["a"]?.errors.count == 1)
      #expect(items["b"]?.report == nil && items["b"]?.errors.count == 1)
      #expect(items["c"]?.report != nil && items["c"]?.errors.isEmpty == true)
    }
  }

  @Test("an item id must have between 1 and 256 bytes")
  func itemIDLength() async throws {
    try await withWorker { client, _ in
      let long = String(repeating: "x", count: 257)
      let items = try await client.batch([.start(""), .start(long), .start(String(repeating: "y", count: 256))])
      #expect(items[""]?.errors.count == 1)
      #expect(items[String(long.prefix(64)) + "…"]?.errors.count == 1)
      #expect(items[String(repeating: "y", count: 256)]?.errors.count == 1)  // never ended, but accepted
    }
  }

  @Test("waiting large chunks count as buffered, and one without room ends only its item")
  func largeChunks() async throws {
    try await withWorker(memoryLimit: 8 << 20) { client, environment in
      let chunk = Array("P6 4000 4000 255\n".utf8) + [UInt8](repeating: 128, count: 3 << 20)
      let whole = Fixture.bytes("photo-420.jpg")
      let items = try await client.batch([
        .start("a"), .chunk("a", chunk[...]), .start("b"), .chunk("b", chunk[...]), .start("c", image: whole),
      ])
      let codes = ["a", "b"].compactMap { items[$0]?.errors.first?.code }
      #expect(Set(codes) == [8, 3])  // RESOURCE_EXHAUSTED, and INVALID_ARGUMENT because its end never arrived
      #expect(items["c"]?.report != nil)
      #expect(environment.memory.buffered == 0)
    }
  }

  @Test("decodes chunks as they arrive: the result starts before the upload ends")
  func streams() async throws {
    try await withWorker { client, _ in
      let image = try tallImage()
      let (results, send) = AsyncStream<Void>.makeStream()
      try await client.batchProcess { writer in
        try await writer.write(.start("a") { $0.maxWidth = 256 })
        let half = image.count / 2
        for offset in stride(from: 0, to: half, by: 8192) {
          try await writer.write(.chunk("a", image[offset..<min(offset + 8192, half)]))
        }
        // The second half is sent only after compressed bytes have arrived.
        for await _ in results { break }
        try await writer.write(.chunk("a", image[half...]))
        try await writer.write(.end("a"))
      } onResponse: { response in
        var isReported = false
        for try await message in response.messages {
          if case .chunk = message.part { send.yield() }
          if case .report = message.part { isReported = true }
        }
        #expect(isReported)
      }
    }
  }

  /// Returns a JPEG of about 100 KB with many rows.
  private func tallImage() throws -> [UInt8] {
    try process(
      Fixture.bytes("photo-420.jpg"),
      ProcessingConfiguration(maxWidth: 900, compressionQuality: 0.95, preferredFormat: .jpeg, allowUpscale: true)
    ).bytes
  }

  @Test("uploads that do not all fit in memory are refused instead of waiting for each other")
  func noDeadlock() async throws {
    let image = try tallImage()
    var reader = ImageReader(limits: ImageLimits())
    _ = try reader.push(image.span.bytes, isLast: true)
    let need = Int(ImagePlan(try reader.plan(ProcessingConfiguration(maxWidth: 64))).reservedByteCount)
    try await withWorker(memoryLimit: need * 3 / 2) { client, environment in
      let ids = (0..<6).map { "item\($0)" }
      var requests = ids.map { Imageworker_V1_BatchProcessRequest.start($0) { $0.maxWidth = 64 } }
      for offset in stride(from: 0, to: image.count, by: 4096) {
        requests += ids.map { .chunk($0, image[offset..<min(offset + 4096, image.count)]) }
      }
      requests += ids.map { .end($0) }
      let items = try await client.batch(requests)
      #expect(items.values.allSatisfy { ($0.report != nil) != (!$0.errors.isEmpty) } && items.count == 6)
      #expect(items.values.contains { $0.report != nil })
      for error in items.values.flatMap(\.errors) { #expect(error.code == 8) }
      #expect(environment.memory.used == 0)
    }
  }

  @Test("a drain lets open items finish, refuses new ones, and then ends the stream")
  func drain() async throws {
    let drain = DrainState()
    try await withWorker(drain: drain) { client, _ in
      let image = Fixture.bytes("photo-420.jpg")
      let (starts, started) = AsyncStream<Void>.makeStream()
      let (ends, ended) = AsyncStream<Void>.makeStream()
      let outcome = Mutex<[String: String]>([:])
      let status = await failure {
        try await client.batchProcess { writer in
          try await writer.write(.start("open", preset: "favicon"))
          try await writer.write(.chunk("open", image.prefix(8000)))
          for await _ in starts { break }  // the header has arrived: the item is being processed
          drain.begin()
          try await writer.write(.start("late", preset: "favicon", image: image))
          try await writer.write(.chunk("open", image.dropFirst(8000)))
          try await writer.write(.end("open"))
          for await _ in ends { break }  // the client would keep the stream open
        } onResponse: { response in
          defer { ended.finish() }
          for try await message in response.messages {
            switch message.part {
            case .header: started.yield()
            case .report: outcome.withLock { $0[message.itemID] = "report" }
            case .error(let error): outcome.withLock { $0[message.itemID] = "error \(error.code)" }
            default: break
            }
          }
        }
      }
      #expect(outcome.withLock { $0 } == ["open": "report", "late": "error 14"])
      #expect(status?.code == .unavailable)
    }
  }

  @Test("a drain names every item that was on its way when it found the stream idle")
  func drainWithLateItems() async throws {
    let drain = DrainState()
    var limits = WorkerLimits.defaults
    limits.drainQuietTime = .seconds(5)
    try await withWorker(limits: limits, drain: drain) { client, _ in
      let (reports, reported) = AsyncStream<Void>.makeStream()
      let (ends, ended) = AsyncStream<Void>.makeStream()
      let named = Mutex<[String]>([])
      let status = await failure {
        try await client.batchProcess { writer in
          try await writer.write(.start("first", preset: "favicon", image: Fixture.bytes("photo-420.jpg")))
          for await _ in reports { break }
          drain.begin()
          for number in 0..<5 {
            try await writer.write(.start("\(number)", preset: "favicon", image: Fixture.bytes("photo-420.jpg")))
          }
          for await _ in ends { break }  // the client would keep the stream open
        } onResponse: { response in
          defer { ended.finish() }
          for try await message in response.messages {
            if case .report = message.part { reported.yield() }
            if message.error.code == 14 { named.withLock { $0.append(message.itemID) } }
          }
        }
      }
      #expect(named.withLock { $0 } == ["0", "1", "2", "3", "4"])
      #expect(status?.code == .unavailable)
    }
  }
}
