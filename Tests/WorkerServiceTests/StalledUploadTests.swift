import Admission
import Foundation
import GRPCCore
import GRPCProtobuf
import ImagePipeline
import SwiftProtobuf
import TestSupport
import Testing
import WorkerProtocol

@testable import WorkerService

@Suite("Stalled uploads", .timeLimit(.minutes(15)))
struct StalledUploadTests {
  typealias Response = Imageworker_V1_BatchProcessResponse

  /// The header of a bottom-up BMP of 1500x1500, for which memory is reserved.
  private static let beginning: [UInt8] = {
    let byteCount = 1500 * 1500 * 3
    var bytes = Array("BM".utf8)
    for value in [54 + byteCount, 0, 54, 40, 1500, 1500] { bytes += Container.littleEndian(value, byteCount: 4) }
    bytes += [1, 0, 24, 0]
    for value in [0, byteCount, 2835, 2835, 0, 0] { bytes += Container.littleEndian(value, byteCount: 4) }
    return bytes
  }()

  /// Returns the memory in bytes that it reserves.
  private static func reservedByteCount() throws -> Int {
    var reader = ImageReader(limits: ImageLimits())
    _ = try reader.push(beginning.span.bytes, isLast: false)
    let preset = try #require(Preset.builtIn.first { $0.name == Preset.defaultName })
    return Int(ImagePlan(try reader.plan(preset.configuration)).reservedByteCount)
  }

  /// Opens one stream; `body` also sees the responses.
  private func talk(
    _ client: Client,
    _ body:
      @escaping @Sendable (
        RPCWriter<Imageworker_V1_BatchProcessRequest>, inout AsyncStream<Response>.Iterator
      ) async throws -> Void
  ) async throws {
    let (responses, received) = AsyncStream<Response>.makeStream()
    try await client.batchProcess { writer in
      var iterator = responses.makeAsyncIterator()
      try await body(writer, &iterator)
    } onResponse: { response in
      defer { received.finish() }
      for try await message in response.messages { received.yield(message) }
    }
  }

  /// The stream ended before the item did.
  private struct StreamEnd: Error { let id: String }

  /// Reads until the item's report or error.
  private static func end(of id: String, _ responses: inout AsyncStream<Response>.Iterator) async throws
    -> Google_Rpc_Status?
  {
    while let response = await responses.next() {
      guard response.itemID == id else { continue }
      switch response.part {
      case .error(let error): return error
      case .report: return nil
      default: break
      }
    }
    throw StreamEnd(id: id)
  }

  @Test("a stalled upload ends, its memory goes to waiting images, and its stream continues")
  func stalled() async throws {
    let need = try Self.reservedByteCount()
    let limits = WorkerLimits(uploadTimeout: .milliseconds(300))
    try await withWorker(limits: limits, memoryLimit: need) { client, environment in
      let good = Fixture.bytes("photo-420.jpg")
      try await talk(client) { writer, responses in
        try await writer.write(.start("stalled"))
        try await writer.write(.chunk("stalled", Self.beginning))
        try await waitUntil("memory is reserved") { environment.memory.peak == need }
        // Another client's image waits for the memory.
        let other = try await client.process(good, preset: "favicon")
        #expect(other.report != nil)
        let end = try await Self.end(of: "stalled", &responses)
        let error = try #require(end)
        let status = try GoogleRPCStatus(serializedBytes: error.serializedBytes() as [UInt8])
        #expect(status.code == .deadlineExceeded && status.message.contains("upload_timeout_seconds"))
        #expect(status.details.first?.errorInfo?.reason == "UPLOAD_STALLED")
        #expect(status.details.first?.errorInfo?.metadata["limit_name"] == "upload_timeout_seconds")
        // Chunks that were already on their way are ignored.
        try await writer.write(.chunk("stalled", [UInt8]([0])))
        try await writer.write(.end("stalled"))
        try await writer.write(.start("good", preset: "favicon", image: good))
        let goodEnd = try await Self.end(of: "good", &responses)
        #expect(goodEnd == nil)
      }
      #expect(environment.memory.used == 0 && environment.memory.buffered == 0)
    }
  }

  @Test("an upload of empty chunks stalls like one that sends nothing")
  func empty() async throws {
    let limit = Duration.seconds(1)
    try await withWorker(limits: WorkerLimits(uploadTimeout: limit)) { client, _ in
      try await talk(client) { writer, responses in
        try await writer.write(.start("empty", preset: "favicon"))
        try await writer.write(.chunk("empty", Self.beginning))
        for _ in 0..<30 {
          try await writer.write(.chunk("empty", [UInt8]()))
          try await Task.sleep(for: limit / 5)
        }
        try await writer.write(.end("empty"))
        let error = try #require(try await Self.end(of: "empty", &responses))
        let status = try GoogleRPCStatus(serializedBytes: error.serializedBytes() as [UInt8])
        #expect(status.details.first?.errorInfo?.reason == "UPLOAD_STALLED")
      }
    }
  }

  @Test("an upload that trickles stalls like one that sends nothing")
  func trickle() async throws {
    let limits = WorkerLimits(uploadTimeout: .seconds(1), minBytesPerSecond: 1_000_000)
    try await withWorker(limits: limits) { client, _ in
      try await talk(client) { writer, responses in
        try await writer.write(.start("slow", preset: "favicon"))
        try await writer.write(.chunk("slow", Self.beginning))
        for _ in 0..<30 {
          try await writer.write(.chunk("slow", [UInt8](repeating: 0, count: 100)))
          try await Task.sleep(for: .milliseconds(100))
        }
        try await writer.write(.end("slow"))
        let error = try #require(try await Self.end(of: "slow", &responses))
        let status = try GoogleRPCStatus(serializedBytes: error.serializedBytes() as [UInt8])
        #expect(status.details.first?.errorInfo?.reason == "UPLOAD_STALLED")
        #expect(status.message.contains("1000000 bytes per second"))
      }
    }
  }

  @Test("an upload that keeps sending bytes is not ended, however long it takes")
  func slow() async throws {
    let limit = Duration.seconds(60)
    try await withWorker(limits: WorkerLimits(uploadTimeout: limit, minBytesPerSecond: 0)) { client, _ in
      let good = Fixture.bytes("photo-420.jpg")
      try await talk(client) { writer, responses in
        try await writer.write(.start("slow", preset: "favicon"))
        let begun = ContinuousClock.now
        var rest = good[...]
        while begun.duration(to: .now) < limit * 3 / 2 {
          try await writer.write(.chunk("slow", rest.prefix(100)))
          rest = rest.dropFirst(100)
          try await Task.sleep(for: limit / 10)
        }
        try await writer.write(.chunk("slow", rest))
        try await writer.write(.end("slow"))
        let end = try await Self.end(of: "slow", &responses)
        #expect(end == nil)
      }
    }
  }

  @Test("a connection's unfinished uploads reserve a part of the memory, and images of others find room")
  func share() async throws {
    let need = try Self.reservedByteCount()
    let limits = WorkerLimits(uploadTimeout: nil)
    try await withWorker(limits: limits, memoryLimit: need * 5) { client, environment in
      let good = Fixture.bytes("photo-420.jpg")
      try await talk(client) { writer, responses in
        for index in 1...5 {
          try await writer.write(.start("\(index)"))
          try await writer.write(.chunk("\(index)", Self.beginning))
          if index <= 3 {
            try await waitUntil("memory is reserved") { environment.memory.used == need * index }
          } else {
            let end = try await Self.end(of: "\(index)", &responses)
            let error = try #require(end)
            #expect(error.code == 8 && error.message.contains("connection"))
          }
        }
        let other = try await client.process(good, preset: "favicon")
        #expect(other.report != nil)
        // All bytes of one upload have arrived, although damaged: it no longer counts.
        try await writer.write(.end("1"))
        _ = try await Self.end(of: "1", &responses)
        try await waitUntil("it counts no more") { environment.memory.used == need * 2 }
        try await writer.write(.start("6"))
        try await writer.write(.chunk("6", Self.beginning))
        try await waitUntil("memory is reserved") { environment.memory.used == need * 3 }
      }
      #expect(environment.memory.used == 0)
    }
  }

  @Test("shares are counted by connection, and a single upload always fits")
  func shares() throws {
    let shares = ConnectionShares(memoryLimit: 100)
    do {
      let first = try shares.take(50, of: "a")
      let error = #expect(throws: PipelineError.self) { _ = try shares.take(26, of: "a") }
      #expect(error?.code == .overloaded)
      let second = try shares.take(25, of: "a")
      let other = try shares.take(100, of: "b")
      #expect(shares.byteCount(of: "a") == 75 && shares.byteCount(of: "b") == 100)
      withExtendedLifetime((first, second, other)) {}
    }
    #expect(shares.byteCount(of: "a") == 0 && shares.byteCount(of: "b") == 0)
  }
}
