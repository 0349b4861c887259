import Admission
import Foundation
import GRPCCore
import GRPCProtobuf
import ImagePipeline
import Logging
import ResultCache
import SwiftProtobuf
import TestSupport
import Testing
import WorkerProtocol
import WorkerService
import WorkerTelemetry

@Suite("Renditions")
struct RenditionTests {
  private static let photo = Fixture.bytes("photo-420.jpg")

  private static func request(
    _ renditions: [Imageworker_V1_Rendition], image: [UInt8] = photo
  ) -> Imageworker_V1_ProcessImageRequest {
    .with {
      $0.image = Data(image)
      $0.renditions = renditions
    }
  }

  private static func start(
    _ id: String, _ renditions: [Imageworker_V1_Rendition], image: [UInt8] = []
  ) -> Imageworker_V1_BatchProcessRequest {
    .with {
      $0.itemID = id
      $0.start.image = Data(image)
      $0.start.renditions = renditions
    }
  }

  @Test("have a header, chunks and a report each, the same as from separate calls")
  func same() async throws {
    try await withWorker { client, environment in
      let png = Fixture.bytes("photo.png")
      let all = try await client.processRenditions(
        Self.request([.named("a", preset: "favicon"), .named("b") { $0.preferredFormat = .webp }], image: png))
      #expect(Set(all.keys) == ["a", "b"])
      for part in all.values {
        #expect(part.parts.first == "header" && part.parts.last == "report")
        #expect(part.parts.filter { $0 == "report" || $0 == "header" }.count == 2)
      }
      #expect(all["a"]?.bytes == (try await client.process(png, preset: "favicon").bytes))
      #expect(all["b"]?.bytes == (try await client.process(png) { $0.preferredFormat = .webp }.bytes))
      #expect(all["b"]?.report?.inputBytes == UInt64(png.count))
      #expect(environment.memory.used == 0)
    }
  }

  @Test("are refused with the name of the invalid field")
  func rules() async throws {
    let good = Imageworker_V1_Rendition.named("a")
    let cases: [(String, Imageworker_V1_ProcessImageRequest)] = [
      ("preset", Self.request([good]).changed { $0.preset = "favicon" }),
      ("configuration", Self.request([good]).changed { $0.configuration.maxWidth = 3 }),
      ("renditions", Self.request((0..<17).map { .named("\($0)") })),
      ("renditions[1].rendition_id", Self.request([good, .named("")])),
      ("renditions[1].rendition_id", Self.request([good, good])),
      ("renditions[0].rendition_id", Self.request([.named(String(repeating: "é", count: 33))])),
      ("renditions[1].configuration.max_width", Self.request([good, .named("b") { $0.maxWidth = 0 }])),
      ("renditions[1].preset", Self.request([good, .named("b", preset: "nope")])),
    ]
    try await withWorker { client, _ in
      for (field, request) in cases {
        let status = await failure { _ = try await client.processRenditions(request) }
        #expect(status?.code == .invalidArgument)
        #expect(status?.details.compactMap(\.badRequest).first?.violations.first?.field == field)
        #expect(status?.message.contains(field.prefix { $0 != "." }) == true)
        let items = try await client.batch([
          .with {
            $0.itemID = "x"
            $0.start.image = request.image
            $0.start.renditions = request.renditions
            $0.start.preset = request.preset
            if request.hasConfiguration { $0.start.configuration = request.configuration }
          }
        ])
        #expect(try items["x"]?.errors.first?.reasonAndField.last == "start.\(field)" && items.count == 1)
      }
      let sixteen = try await client.processRenditions(
        Self.request((0..<16).map { .named("\($0)", preset: "favicon") }))
      #expect(sixteen.count == 16 && Set(sixteen.values.map(\.bytes)).count == 1)
    }
  }

  @Test("fail alone, with the error's place in the request; an error of the image ends all")
  func errors() async throws {
    let registry = MetricRegistry()
    try await withWorker(metrics: registry) { client, environment in
      let outside = Imageworker_V1_Rendition.named("outside") {
        $0.crop = .with { ($0.x, $0.width, $0.height) = (500, 9, 9) }
      }
      let all = try await client.processRenditions(
        Self.request([.named("a", preset: "favicon"), outside, .named("b", preset: "preview")]))
      #expect(all["a"]?.report != nil && all["b"]?.report != nil && all["a"]?.errors.isEmpty == true)
      #expect(all["outside"]?.parts == ["error"])
      #expect(
        try all["outside"]?.errors.first?.reasonAndField == ["INVALID_FIELD", "renditions[1].configuration.crop.x"])
      let only = try await client.processRenditions(Self.request([outside]))
      #expect(only["outside"]?.parts == ["error"])

      let cut = Array(Self.photo.prefix(3000))
      let status = await failure {
        _ = try await client.processRenditions(Self.request([.named("a"), .named("b")], image: cut))
      }
      #expect(status?.details.first?.errorInfo?.reason == "TRUNCATED_IMAGE")
      let items = try await client.batch([
        Self.start("cut", [.named("a"), .named("b")], image: cut),
        Self.start("x", [outside, .named("b", preset: "favicon")], image: Self.photo),
      ])
      #expect(items["cut"]?.parts == ["error"] && items["cut/a"]?.report == nil)
      #expect(items["x/outside"]?.parts == ["error"] && items["x/b"]?.parts.last == "report" && items["x"] == nil)
      #expect(
        try items["x/outside"]?.errors.first?.reasonAndField.last == "start.renditions[0].configuration.crop.x")
      #expect(environment.memory.used == 0)
    }
    var totals: [String: Double] = [:]
    for family in registry.collect() {
      for series in family.series {
        guard case .counter(let value) = series.value else { continue }
        totals[([family.description.name] + series.dimensions.map(\.value)).joined(separator: " ")] = value
      }
    }
    #expect(totals["imageworker.images ok"] == 2 && totals["imageworker.images invalid_field"] == 1)
    #expect(totals["imageworker.images truncated_image"] == 2)
    #expect(totals["imageworker.renditions ok"] == 3 && totals["imageworker.renditions invalid_field"] == 3)
    #expect(totals["imageworker.input jpeg"] == Double(2 * Self.photo.count))
  }

  @Test("of chunked uploads interleave with those of others, and the item is free when the last has ended")
  func interleaved() async throws {
    try await withWorker { client, environment in
      let sizes: [Imageworker_V1_Rendition] = [
        .named("large") { $0.maxWidth = 200 }, .named("small", preset: "favicon"),
      ]
      let png = Fixture.bytes("photo.png")
      var requests = [Self.start("a", sizes), Self.start("b", sizes), Self.start("whole", sizes, image: png)]
      for offset in stride(from: 0, to: max(Self.photo.count, png.count), by: 700) {
        requests.append(.chunk("a", Self.photo.dropFirst(offset).prefix(700)))
        requests.append(.chunk("b", png.dropFirst(offset).prefix(700)))
      }
      requests += [.end("a"), .end("b"), .start("a", preset: "favicon", image: png)]
      let items = try await client.batch(requests)
      for id in ["a/large", "a/small", "b/large", "b/small", "whole/large", "whole/small"] {
        #expect(items[id]?.parts.first == "header" && items[id]?.parts.last == "report", "\(id)")
      }
      #expect(items["b/small"]?.bytes == items["whole/small"]?.bytes)
      #expect(items["a"]?.parts == ["error"])  // the id was used earlier
      #expect(environment.memory.used == 0)
    }
  }

  @Test("that are cached are returned together, and not as results of other requests")
  func cache() async throws {
    let cache = try ResultCache(limits: CacheLimits(), logger: Logger(label: "test"))
    try await withWorker(cache: cache) { client, environment in
      let favicon = try await client.process(Self.photo, preset: "favicon")
      let sizes: [Imageworker_V1_Rendition] = [
        .named("f", preset: "favicon"), .named("p", preset: "preview"),
        .named("bad") { $0.crop = .with { ($0.x, $0.width, $0.height) = (500, 9, 9) } },
      ]
      let failing = try await client.processRenditions(Self.request(sizes))
      #expect(failing["f"]?.report?.cacheHit == false && failing["bad"]?.parts == ["error"])
      let first = try await client.processRenditions(Self.request(Array(sizes.prefix(2))))
      #expect(first.values.allSatisfy { $0.report?.cacheHit == false })
      let second = try await client.processRenditions(Self.request(Array(sizes.prefix(2))))
      #expect(second.values.allSatisfy { $0.report?.cacheHit == true } && second["p"]?.bytes == first["p"]?.bytes)
      #expect(try await client.process(Self.photo, preset: "preview").report?.cacheHit == false)
      #expect(try await client.process(Self.photo, preset: "favicon").bytes == favicon.bytes)

      let png = Fixture.bytes("photo.png")
      let chunked = try await client.batch([
        Self.start("a", Array(sizes.prefix(2))), .chunk("a", png.prefix(900)), .chunk("a", png.dropFirst(900)),
        .end("a"),
      ])
      let whole = try await client.processRenditions(Self.request(Array(sizes.prefix(2)), image: png))
      for id in ["f", "p"] {
        #expect(whole[id]?.report?.cacheHit == true && whole[id]?.bytes == chunked["a/\(id)"]?.bytes)
      }
      #expect(environment.memory.used == 0)
    }
  }

  @Test("of one upload wait for memory together once, and stop waiting when their caller leaves")
  func cancellation() async throws {
    try await withWorker { client, environment in
      let (headers, header) = AsyncStream<Void>.makeStream()
      let call = Task {
        try await client.batchProcess { writer in
          try await writer.write(Self.start("a", [.named("x"), .named("y", preset: "favicon")]))
          try await writer.write(.chunk("a", Self.photo.prefix(8000)))
          try await Task.sleep(for: .seconds(3600))
        } onResponse: { response in
          for try await message in response.messages {
            if case .header = message.part, message.renditionID == "y" { header.yield() }
          }
        }
      }
      for await _ in headers { break }
      #expect(environment.memory.used > 0)
      call.cancel()
      _ = await call.result
      try await waitUntil("all memory is given back") { environment.memory.used == 0 }
    }
  }
}
