import Admission
import Foundation
import GRPCCore
import ImagePipeline
import SwiftProtobuf
import Synchronization
import TestSupport
import Testing
import WorkerProtocol
import WorkerService

@Suite("Preview keys")
struct PreviewKeyTests {
  typealias Request = Imageworker_V1_BatchProcessRequest
  typealias Response = Imageworker_V1_BatchProcessResponse

  private static let photo = Fixture.bytes("photo-420.jpg")

  private static func start(
    _ id: String, key: String, image: [UInt8] = [], preview: Bool = false, width: UInt32 = 60
  ) -> Request {
    .start(id, image: image) { ($0.maxWidth, $0.allowUpscale, $0.preferredFormat) = (width, true, .jpeg) }.changed {
      $0.start.previewKey = key
      $0.start.preview = preview
    }
  }

  /// Opens one stream on which requests depend on received responses.
  private func talk(
    _ client: Client,
    _ body: @escaping @Sendable (RPCWriter<Request>, AsyncStream<Response>) async throws -> Void
  ) async throws -> [Response] {
    let (responses, received) = AsyncStream<Response>.makeStream()
    return try await client.batchProcess { writer in
      try await body(writer, responses)
    } onResponse: { response in
      defer { received.finish() }
      var all: [Response] = []
      for try await message in response.messages {
        all.append(message)
        received.yield(message)
      }
      return all
    }
  }

  /// Returns what ended an item: "report", or its error's code and message.
  private func ends(of id: String, in responses: [Response]) -> [String] {
    responses.compactMap { response in
      guard response.itemID == id, !response.isPreview else { return nil }
      return switch response.part {
      case .report: "report"
      case .error(let error): "\(error.code) \(error.message)"
      default: nil
      }
    }
  }

  private static func replaced(by id: String) -> [String] {
    ["1 replaced by item \(id), which has the same preview_key"]
  }

  @Test("cancel an upload, whose late chunks are ignored, and nothing else")
  func uploading() async throws {
    try await withWorker { client, environment in
      let responses = try await talk(client) { writer, responses in
        for id in ["a", "other"] {
          try await writer.write(Self.start(id, key: id == "a" ? "k" : "", preview: true))
          try await writer.write(.chunk(id, Self.photo.prefix(9000)))
        }
        // Both are being processed; their first results wait for the previews.
        _ = await responses.first { $0.isPreview && $0.itemID == "a" }
        try await writer.write(Self.start("b", key: "k", image: Self.photo, preview: true))
        try await writer.write(.chunk("a", Self.photo.dropFirst(9000)))
        try await writer.write(.end("a"))
        try await writer.write(.chunk("other", Self.photo.dropFirst(9000)))
        try await writer.write(.end("other"))
      }
      #expect(ends(of: "a", in: responses) == Self.replaced(by: "b"))
      #expect(ends(of: "b", in: responses) == ["report"] && ends(of: "other", in: responses) == ["report"])
      let last = responses.last { $0.itemID == "a" }
      if case .error = last?.part {} else { Issue.record("something follows the end of the item") }
      #expect(environment.memory.used == 0 && environment.memory.buffered == 0)
    }
  }

  @Test("cancel an item that waits for memory, which others go on to wait for")
  func queued() async throws {
    try await withWorker { client, environment in
      let all = Mutex<Reservation?>(
        try await environment.memory.reserve(environment.memory.limit, cancellation: Cancellation()))
      let responses = try await talk(client) { writer, responses in
        try await writer.write(Self.start("a", key: "k", image: Self.photo))
        try await writer.write(Self.start("other", key: "l", image: Self.photo))
        try await writer.write(Self.start("b", key: "k", image: Self.photo))
        let first = await responses.first { _ in true }
        #expect(first?.itemID == "a")
        all.withLock { $0 = nil }
      }
      #expect(ends(of: "a", in: responses) == Self.replaced(by: "b"))
      #expect(ends(of: "b", in: responses) == ["report"] && ends(of: "other", in: responses) == ["report"])
      #expect(environment.memory.used == 0)
    }
  }

  @Test("cancel an item that is worked on, within a strip, and so make room for the next")
  func working() async throws {
    var limits = WorkerLimits.defaults
    limits.maxImagesPerStream = 1
    try await withWorker(limits: limits) { client, environment in
      let responses = try await talk(client) { writer, responses in
        try await writer.write(Self.start("a", key: "k", image: Self.photo, width: 30_000))
        _ = await responses.first { $0.itemID == "a" }
        try await writer.write(Self.start("b", key: "k", image: Self.photo))
      }
      #expect(ends(of: "a", in: responses) == Self.replaced(by: "b") && ends(of: "b", in: responses) == ["report"])
      #expect(environment.memory.used == 0)
    }
  }

  @Test("do not affect ended items, other keys, and the item that a refused item would have replaced")
  func untouched() async throws {
    try await withWorker { client, _ in
      let responses = try await talk(client) { writer, responses in
        try await writer.write(Self.start("ended", key: "k", image: Self.photo))
        _ = await responses.first { if case .report = $0.part { true } else { false } }
        try await writer.write(Self.start("open", key: "k"))
        try await writer.write(.chunk("open", Self.photo.prefix(5000)))
        try await writer.write(Self.start("refused", key: "k", image: Self.photo, width: 0))
        try await writer.write(Self.start("long", key: String(repeating: "k", count: 257), image: Self.photo))
        try await writer.write(Self.start("longest", key: String(repeating: "k", count: 256), image: Self.photo))
        for id in ["none", "none 2"] { try await writer.write(Self.start(id, key: "", image: Self.photo)) }
        try await writer.write(.chunk("open", Self.photo.dropFirst(5000)))
        try await writer.write(.end("open"))
      }
      for id in ["ended", "open", "longest", "none", "none 2"] {
        #expect(ends(of: id, in: responses) == ["report"], "\(id)")
      }
      let errors = ["refused", "long"].compactMap { id in responses.last { $0.itemID == id }?.error }
      #expect(
        try errors.map { try $0.reasonAndField } == [
          ["INVALID_FIELD", "start.configuration.max_width"], ["INVALID_FIELD", "start.preview_key"],
        ])
    }
  }

  @Test("free the place of an upload among those that may be open")
  func openUploads() async throws {
    var limits = WorkerLimits.defaults
    limits.maxOpenUploads = 1
    try await withWorker(limits: limits) { client, environment in
      let ids = (0..<50).map { "\($0)" }
      let responses = try await talk(client) { writer, _ in
        for id in ids {
          try await writer.write(Self.start(id, key: "k"))
          try await writer.write(.chunk(id, Self.photo.prefix(1000)))
        }
        try await writer.write(Self.start("more", key: "l"))
        try await writer.write(.chunk("49", Self.photo.dropFirst(1000)))
        try await writer.write(.end("49"))
      }
      for (id, next) in zip(ids, ids.dropFirst()) {
        #expect(ends(of: id, in: responses) == Self.replaced(by: next), "\(id)")
      }
      #expect(ends(of: "49", in: responses) == ["report"])
      #expect(ends(of: "more", in: responses).first?.hasPrefix("8 ") == true)
      #expect(environment.memory.used == 0 && environment.memory.buffered == 0)
    }
  }

  @Test("give each of a hundred items that race with their ends exactly one end", arguments: [false, true])
  func race(preview: Bool) async throws {
    try await withWorker { client, environment in
      let ids = (0..<100).map { "\($0)" }
      let responses = try await talk(client) { writer, responses in
        for (index, id) in ids.enumerated() {
          let isWhole = index % 3 > 0
          let image = isWhole ? Self.photo : []
          try await writer.write(Self.start(id, key: "k", image: image, preview: preview))
          if !isWhole {
            for offset in stride(from: 0, to: Self.photo.count, by: 4000) {
              try await writer.write(.chunk(id, Self.photo.dropFirst(offset).prefix(4000)))
            }
            try await writer.write(.end(id))
          }
          // Some items progress, some are complete.
          if index % 4 == 0 { _ = await responses.first { $0.itemID == id } }
          if index % 10 == 9 {
            _ = await responses.first { response in
              guard response.itemID == id, !response.isPreview else { return false }
              return switch response.part {
              case .report, .error: true
              default: false
              }
            }
          }
        }
      }
      for (index, id) in ids.enumerated() {
        let ends = ends(of: id, in: responses)
        let isReplaced = index < 99 && ends == Self.replaced(by: ids[index + 1])
        #expect(ends == ["report"] || isReplaced, "\(id): \(ends)")
        let last = responses.last { $0.itemID == id }
        #expect(last?.isPreview == false, "\(id)")
      }
      #expect(ends(of: "99", in: responses) == ["report"] && ends(of: "9", in: responses) == ["report"])
      #expect(environment.memory.used == 0 && environment.memory.buffered == 0)
    }
  }
}
