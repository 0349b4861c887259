import Admission
import Foundation
import GRPCCore
import GRPCProtobuf
import ImageCodecs
import ImagePipeline
import Logging
import ResultCache
import SwiftProtobuf
import Synchronization
import TestSupport
import Testing
import Tracing
import WorkerProtocol
import WorkerService
import WorkerTelemetry

@Suite("Previews")
struct PreviewTests {
  typealias Configuration = Imageworker_V1_ProcessingConfiguration

  struct Case: Sendable {
    var name: String
    var configuration = Configuration()
    var size: [UInt32]
    var format = "jpeg"
    var isPassed = false
  }

  private static let photo = Fixture.bytes("photo-420.jpg")

  private static let cases = [
    Case(name: "photo-420.jpg", size: [240, 160], isPassed: true),
    Case(name: "photo.png", size: [120, 80], isPassed: true),
    Case(
      name: "photo-420.jpg", configuration: .with { ($0.maxWidth, $0.allowUpscale) = (600, true) },
      size: [300, 200]),
    Case(name: "photo-progressive.jpg", configuration: .with { $0.maxWidth = 100 }, size: [100, 67]),
    Case(name: "orientation-6.jpg", configuration: .with { ($0.maxHeight, $0.allowUpscale) = (450, true) }, size: []),
    Case(
      name: "alpha.png", configuration: .with { ($0.maxWidth, $0.allowUpscale) = (700, true) }, size: [],
      format: "png"),
    Case(name: "photo.webp", configuration: .with { $0.preferredFormat = .jpeg }, size: [120, 80]),
    Case(
      name: "photo.gif",
      configuration: .with {
        ($0.maxWidth, $0.maxHeight, $0.pad, $0.rotation) = (400, 600, true, 90)
      }, size: [200, 300]),
  ]

  private static func request(
    _ image: [UInt8], _ change: (inout Configuration) -> Void = { _ in }
  ) -> Imageworker_V1_ProcessImageRequest {
    .with {
      $0.image = Data(image)
      $0.preview = true
      change(&$0.configuration)
    }
  }

  /// Returns the requests for an item whose image arrives in chunks.
  private static func upload(
    _ id: String, _ image: [UInt8], chunk: Int, isPreviewed: Bool = true, _ configuration: Configuration
  ) -> [Imageworker_V1_BatchProcessRequest] {
    let start = Imageworker_V1_BatchProcessRequest.start(id) { $0 = configuration }.changed {
      $0.start.preview = isPreviewed
    }
    return [start]
      + stride(from: 0, to: image.count, by: chunk).map { .chunk(id, image[$0..<min($0 + chunk, image.count)]) }
      + [.end(id)]
  }

  private func check(_ preview: Collected?, before result: Collected?, _ expected: Case) throws {
    let preview = try #require(preview, "\(expected.name)")
    let result = try #require(result)
    #expect(preview.parts.first == "header" && preview.parts.last == "report" && preview.errors.isEmpty)
    #expect(preview.parts.filter { $0 != "chunk" }.count == 2 && preview.parts.count > 2)
    #expect(preview.places.max() ?? 0 < result.places.min() ?? 0)
    let (header, full) = (try #require(preview.header), try #require(result.header))
    #expect(header == preview.report?.output && header.format == expected.format)
    #expect(max(header.width, header.height) <= 300 && header.hasAlpha_p == (expected.format == "png"))
    if !expected.size.isEmpty { #expect([header.width, header.height] == expected.size) }
    let ratio = Double(header.width) / Double(header.height) / (Double(full.width) / Double(full.height))
    #expect(abs(ratio - 1) < 0.02, "\(expected.name)")
    #expect(preview.report?.outputBytes == UInt64(preview.bytes.count) && preview.report?.passthrough == false)
  }

  private func checkColors(_ preview: Collected?, _ result: Collected?, _ expected: Case) throws {
    let small = try Pixels.decode(preview?.bytes ?? [])
    let large = try Pixels.decode(result?.bytes ?? [])
    #expect(small.layout[0].width == Int(preview?.header?.width ?? 0))
    #expect(small.layout[0].height == Int(preview?.header?.height ?? 0))
    for (one, other) in zip(small.mean, large.mean) { #expect(abs(one - other) < 4, "\(expected.name)") }
  }

  @Test("precede the result without changing it, for complete images and for uploads", arguments: cases)
  func same(_ expected: Case) async throws {
    try await withWorker { client, environment in
      let bytes = Fixture.bytes(expected.name)
      let alone = try await client.process(bytes) { $0 = expected.configuration }
      let all = try await client.processRenditions(Self.request(bytes) { $0 = expected.configuration })
      try check(all["~preview"], before: all[""], expected)
      try checkColors(all["~preview"], all[""], expected)
      #expect(all[""]?.bytes == alone.bytes && all[""]?.header == alone.header && all.count == 2)
      #expect(all[""]?.report?.passthrough == expected.isPassed && alone.report?.passthrough == expected.isPassed)

      let plain = try await client.batch(
        Self.upload("a", bytes, chunk: 700, isPreviewed: false, expected.configuration))
      for chunk in [7, 700, 100_000] {
        let items = try await client.batch(Self.upload("a", bytes, chunk: chunk, expected.configuration))
        try check(items["a~preview"], before: items["a"], expected)
        #expect(items["a"]?.bytes == plain["a"]?.bytes && items["a~preview"]?.bytes == all["~preview"]?.bytes)
        #expect(items["a"]?.errors.isEmpty == true && items["a"]?.parts.last == "report")
      }
      let whole = try await client.batch([
        .start("w", image: bytes) { $0 = expected.configuration }.changed { $0.start.preview = true }
      ])
      try check(whole["w~preview"], before: whole["w"], expected)
      #expect(whole["w"]?.bytes == alone.bytes)
      #expect(environment.memory.used == 0 && environment.memory.buffered == 0)
    }
  }

  @Test("leave the errors of an image to its result")
  func errors() async throws {
    try await withWorker { client, environment in
      let cut = Array(Self.photo.prefix(3000))
      let status = await failure { _ = try await client.processRenditions(Self.request(cut)) }
      #expect(status?.details.first?.errorInfo?.reason == "TRUNCATED_IMAGE")
      let outside = await failure {
        _ = try await client.processRenditions(
          Self.request(Self.photo) { $0.crop = .with { ($0.x, $0.width, $0.height) = (500, 9, 9) } })
      }
      #expect(outside?.details.compactMap(\.badRequest).first?.violations.first?.field == "configuration.crop.x")
      // An image of an unknown format, and an upload of it without an end.
      let resized = Configuration.with { $0.maxWidth = 100 }
      for isPreviewed in [false, true] {
        let items = try await client.batch(
          Self.upload("cut", cut, chunk: 500, isPreviewed: isPreviewed, resized)
            + Self.upload(
              "words", Array("only words, and no image".utf8), chunk: 3, isPreviewed: isPreviewed, resized)
            + Self.upload("open", cut, chunk: 500, isPreviewed: isPreviewed, resized).dropLast()
            + Self.upload("good", Self.photo, chunk: 900, isPreviewed: isPreviewed, resized))
        for id in ["cut", "words", "open"] {
          #expect(items[id]?.errors.count == 1 && items[id]?.parts.last == "error", "\(id)")
          #expect(items["\(id)~preview"]?.report == nil && items["\(id)~preview"]?.errors.isEmpty != false)
        }
        // Parts that were ready before the error.
        #expect(items["cut"]?.parts.first == "header" && items["open"]?.parts.first == "header")
        #expect(items["good"]?.parts.last == "report" && (items["good~preview"]?.report != nil) == isPreviewed)
      }
      let tolerant = Configuration.with { ($0.maxWidth, $0.tolerateTruncation) = (100, true) }
      let tolerated = try await client.processRenditions(Self.request(cut) { $0 = tolerant })
      #expect(tolerated["~preview"]?.report?.warnings.isEmpty == false && tolerated["~preview"]?.bytes.isEmpty == false)
      #expect(try await client.process(cut) { $0 = tolerant }.bytes == tolerated[""]?.bytes)
      #expect(environment.memory.used == 0 && environment.memory.buffered == 0)
    }
  }

  @Test("are refused with renditions")
  func renditions() async throws {
    try await withWorker { client, _ in
      let request = Imageworker_V1_ProcessImageRequest.with {
        ($0.image, $0.preview, $0.renditions) = (Data(Self.photo), true, [.named("a")])
      }
      let status = await failure { _ = try await client.processRenditions(request) }
      #expect(status?.code == .invalidArgument)
      #expect(status?.details.compactMap(\.badRequest).first?.violations.first?.field == "preview")
      let items = try await client.batch([
        .with {
          $0.itemID = "x"
          ($0.start.image, $0.start.preview, $0.start.renditions) = (request.image, true, [.named("a")])
        }
      ])
      #expect(try items["x"]?.errors.first?.reasonAndField == ["INVALID_FIELD", "start.preview"])
    }
  }

  @Test("are skipped if there is memory only for the result")
  func memory() async throws {
    var reader = ImageReader(limits: ImageLimits())
    _ = try reader.push(Self.photo.span.bytes, isLast: true)
    let plan = ImagePlan(try reader.plan(ProcessingConfiguration(maxWidth: 100)))
    let need = Int(plan.reservedByteCount) + Self.photo.count
    let registry = MetricRegistry()
    try await withWorker(memoryLimit: need + 1000, metrics: registry) { client, environment in
      let all = try await client.processRenditions(Self.request(Self.photo) { $0.maxWidth = 100 })
      #expect(all["~preview"] == nil && all[""]?.parts.last == "report")
      let items = try await client.batch(Self.upload("a", Self.photo, chunk: 900, .with { $0.maxWidth = 100 }))
      #expect(items["a~preview"] == nil && items["a"]?.parts.last == "report")
      #expect(environment.memory.used == 0)
    }
    #expect(registry.counts["imageworker.previews limit_exceeded"] == 2)
    // There is also no preview if the result's parts cannot be buffered meanwhile.
    try await withWorker { client, environment in
      var others = Hold(budget: environment.memory)
      try others.grow(to: environment.memory.reservationLimit)
      let alone = try await client.process(Self.photo) { $0.maxWidth = 100 }
      let items = try await client.batch(Self.upload("a", Self.photo, chunk: 900, .with { $0.maxWidth = 100 }))
      #expect(items["a~preview"]?.report == nil && items["a"]?.bytes == alone.bytes)
      // With a complete image nothing has to be buffered.
      let whole = try await client.processRenditions(Self.request(Self.photo) { $0.maxWidth = 100 })
      #expect(whole["~preview"]?.report != nil && whole[""]?.bytes == alone.bytes)
      others.release()
      #expect(environment.memory.used == 0 && environment.memory.buffered == 0)
    }
  }

  @Test("are neither cached nor sent with cached results")
  func cache() async throws {
    let cache = try ResultCache(limits: CacheLimits(), logger: Logger(label: "test"))
    try await withWorker(cache: cache) { client, _ in
      let first = try await client.processRenditions(Self.request(Self.photo) { $0.maxWidth = 90 })
      let second = try await client.processRenditions(Self.request(Self.photo) { $0.maxWidth = 90 })
      let plain = try await client.process(Self.photo) { $0.maxWidth = 90 }
      #expect(first["~preview"]?.report?.cacheHit == false && first[""]?.report?.cacheHit == false)
      #expect(second["~preview"] == nil && second[""]?.report?.cacheHit == true)
      #expect(plain.report?.cacheHit == true && Set([first[""]?.bytes, second[""]?.bytes, plain.bytes]).count == 1)
      let png = Fixture.bytes("photo.png")
      let items = try await client.batch(Self.upload("a", png, chunk: 999, .with { $0.maxWidth = 90 }))
      let kept = try await client.process(png) { $0.maxWidth = 90 }
      #expect(items["a~preview"]?.report != nil && items["a"]?.report?.cacheHit == false)
      #expect(kept.report?.cacheHit == true && kept.bytes == items["a"]?.bytes)
    }
  }

  @Test("are measured apart from images, and marked in traces")
  func measured() async throws {
    let registry = MetricRegistry()
    let spans = Mutex<[FinishedSpan]>([])
    let tracer = RecordingTracer { span in spans.withLock { $0.append(span) } }
    var byteCount = 0
    try await withWorker(tracer: tracer, metrics: registry) { client, _ in
      byteCount =
        try await client.processRenditions(Self.request(Self.photo) { $0.maxWidth = 90 })[""]?.bytes.count ?? 0
    }
    let counts = registry.counts
    #expect(counts["imageworker.previews ok"] == 1 && counts["imageworker.images ok"] == 1)
    #expect(counts["imageworker.input jpeg"] == Double(Self.photo.count))
    #expect(counts["imageworker.output jpeg"] == Double(byteCount) && byteCount > 0)
    for name in ["decode", "resize", "encode"] {
      let marks = spans.withLock { $0 }.filter { $0.name == name }.map {
        $0.attributes.get("imageworker.is_preview") == true.toSpanAttribute()
      }
      #expect(marks == [true, false], "\(name)")
    }
    // Once for a thread, and once for the memory of both.
    #expect(spans.withLock { $0 }.count { $0.name == "queue" } == 2)
  }
}

extension MetricRegistry {
  /// The counters by name and dimensions.
  fileprivate var counts: [String: Double] {
    var counts: [String: Double] = [:]
    for family in collect() {
      for series in family.series {
        guard case .counter(let value) = series.value else { continue }
        counts[([family.description.name] + series.dimensions.map(\.value)).joined(separator: " ")] = value
      }
    }
    return counts
  }
}
