import Admission
import GRPCCore
import GRPCProtobuf
import ImageCodecs
import ImagePipeline
import InMemoryTracing
import SwiftProtobuf
import TestSupport
import Testing
import Tracing
import WorkerProtocol
import WorkerService

@Suite("ProcessImage")
struct ProcessImageTests {
  @Test("returns a header, chunks of at most 64 KiB, and a report, in this order")
  func order() async throws {
    try await withWorker { client, environment in
      let result = try await client.process(Fixture.bytes("photo-420.jpg"), preset: "favicon")
      #expect(result.parts.first == "header" && result.parts.last == "report")
      #expect(result.parts.dropFirst().dropLast().allSatisfy { $0 == "chunk" } && result.parts.count > 2)
      #expect(result.largestChunk <= 65536)
      let pixels = try Pixels.decode(result.bytes)
      #expect(pixels.layout[0].width == 64 && pixels.layout[0].height == 43)
      #expect(result.header?.width == 64 && result.header?.height == 43 && result.header?.format == "jpeg")
      let report = try #require(result.report)
      #expect(report.input.width == 240 && report.output.width == 64)
      #expect(report.outputBytes == UInt64(result.bytes.count))
      #expect(report.timings.decode.nanos > 0 && report.timings.encode.nanos > 0 && report.peakMemoryBytes > 0)
      #expect(environment.memory.used == 0)
    }
  }

  @Test("splits large results into chunks of at most 64 KiB")
  func largeResult() async throws {
    try await withWorker { client, _ in
      // Noise, which no compressor makes smaller.
      let samples = noiseSamples(300 * 300 * 3)
      let result = try await client.process(Array("P6 300 300 255\n".utf8) + samples) { $0.preferredFormat = .png }
      #expect(result.bytes.count > 3 * 65536 && result.largestChunk <= 65536)
      #expect(try Pixels.decode(result.bytes).layout[0].width == 300)
    }
  }

  @Test("applies filters in order, and reports their time")
  func filters() async throws {
    try await withWorker { client, _ in
      func red(_ names: [String]) async throws -> Double {
        let result = try await client.process(Fixture.bytes("photo.png")) { configuration in
          configuration.filters = names.map { name in
            .with {
              $0.name = name
              $0.intensity = 1
              $0.parameters = name == "duotone" ? ["light_red": 0, "dark_red": 0] : [:]
            }
          }
        }
        let report = try #require(result.report)
        #expect(report.timings.filter.nanos > 0)
        return try Pixels.decode(result.bytes).mean[0]
      }
      let inverted = try await red(["duotone", "invert"])
      let duotone = try await red(["invert", "duotone"])
      #expect(inverted == 255 && duotone == 0)
    }
  }

  @Test("a filter without an intensity changes nothing")
  func idleFilter() async throws {
    try await withWorker { client, _ in
      let plain = try await client.process(Fixture.bytes("photo-420.jpg"), preset: "favicon")
      let idle = try await client.process(Fixture.bytes("photo-420.jpg"), preset: "favicon") {
        $0.filters = [.with { $0.name = "sepia" }]
      }
      #expect(idle.bytes == plain.bytes)
    }
  }

  @Test("a truncated image is an error, or with tolerate_truncation a partial result with a warning")
  func truncation() async throws {
    try await withWorker { client, _ in
      let cut = Array(Fixture.bytes("photo-420.jpg").dropLast(3000))
      let status = await failure { _ = try await client.process(cut) { _ in } }
      #expect(status?.code == .invalidArgument)
      let result = try await client.process(cut) { $0.tolerateTruncation = true }
      let report = try #require(result.report)
      #expect(report.warnings.contains { $0.contains("is truncated") })
      #expect(report.warningDetails.map(\.message) == report.warnings)
      #expect(report.warningDetails.contains { $0.code == .truncated })
      #expect(report.output.height == report.input.height)
    }
  }

  struct BadRequestCase: Sendable, CustomTestStringConvertible {
    var field: String
    var code = RPCError.Code.invalidArgument
    var change: @Sendable (inout Imageworker_V1_ProcessingConfiguration) -> Void
    var testDescription: String { field }
  }

  @Test(
    "refuses a field out of range, or not served, by its name",
    arguments: [
      BadRequestCase(field: "configuration.compression_quality") { $0.compressionQuality = 1.5 },
      BadRequestCase(field: "configuration.compression_quality") { $0.compressionQuality = .nan },
      BadRequestCase(field: "configuration.scale_factor") { $0.scaleFactor = 0.5 },
      BadRequestCase(field: "configuration.max_width") { $0.maxWidth = 0 },
      BadRequestCase(field: "configuration.max_height") { $0.maxHeight = 1_000_000 },
      BadRequestCase(field: "configuration.background.red") { $0.background.red = 256 },
      BadRequestCase(field: "configuration.preferred_format") { $0.preferredFormat = .UNRECOGNIZED(99) },
      BadRequestCase(field: "configuration.resize_mode") { $0.resizeMode = .stretch },
      BadRequestCase(field: "configuration.resize_mode") { $0.resizeMode = .fill },
      BadRequestCase(field: "configuration.max_bytes") { $0.maxBytes = 0 },
      BadRequestCase(field: "configuration.crop.height") { $0.crop.width = 1 },
      BadRequestCase(field: "configuration.crop.width") {
        ($0.crop.width, $0.crop.height) = (100_000, 1)
      },
      BadRequestCase(field: "configuration.gravity") { $0.gravity = .UNRECOGNIZED(77) },
      BadRequestCase(field: "configuration.overlays[0].gravity") { $0.overlays = [.with { $0.gravity = .smart }] },
      BadRequestCase(field: "configuration.overlays[0].gravity") { $0.overlays = [.with { $0.gravity = .faces }] },
      BadRequestCase(field: "configuration.focus_point.x") { $0.focusPoint.x = 1.1 },
      BadRequestCase(field: "configuration.rotation") { $0.rotation = 45 },
      BadRequestCase(field: "configuration.filters[0].name") { $0.filters = [.with { $0.name = "sepa" }] },
      BadRequestCase(field: "configuration.filters[1].intensity") {
        $0.filters = [
          .with { $0.name = "sepia" },
          .with {
            $0.name = "sepia"; $0.intensity = 2
          },
        ]
      },
      BadRequestCase(field: #"configuration.filters[0].parameters["radius"]"#) {
        $0.filters = [
          .with {
            $0.name = "blur"; $0.parameters["radius"] = 0
          }
        ]
      },
      BadRequestCase(field: "configuration.jpeg.restart_rows") { $0.jpeg.restartRows = 65_536 },
      BadRequestCase(field: "configuration.jpeg.chroma_subsampling") { $0.jpeg.chromaSubsampling = .UNRECOGNIZED(9) },
      BadRequestCase(field: "configuration.png.compression_level") { $0.png.compressionLevel = 10 },
      BadRequestCase(field: "configuration.png.filter") { $0.png.filter = .UNRECOGNIZED(7) },
      BadRequestCase(field: "configuration.png.palette_colors") { $0.png.paletteColors = 257 },
      BadRequestCase(field: "configuration.webp.near_lossless") { $0.webp.nearLossless = 101 },
      BadRequestCase(field: "configuration.webp.method") { $0.webp.method = 7 },
    ])
  func badFields(test: BadRequestCase) async throws {
    try await withWorker { client, _ in
      let status = await failure { _ = try await client.process(Fixture.bytes("photo.png"), test.change) }
      #expect(status?.code == test.code)
      #expect(status?.details.first?.errorInfo?.domain == "imageworker.v1")
      #expect(status?.details.compactMap(\.badRequest).first?.violations.first?.field == test.field)
    }
  }

  @Test(
    "says what is wrong with an image",
    arguments: [
      ([], RPCError.Code.invalidArgument, "EMPTY_IMAGE"),
      (Array("only words, many of them, and no image".utf8), .unimplemented, "UNKNOWN_FORMAT"),
      (Array("qoif".utf8) + [0, 0, 0, 1], .unimplemented, "UNSUPPORTED_IMAGE"),
      (Array(Fixture.bytes("photo-420.jpg").prefix(3000)), .invalidArgument, "TRUNCATED_IMAGE"),
      (Fixture.bytes("pngsuite-xcsn0g01.png"), .invalidArgument, "CORRUPT_IMAGE"),
    ] as [([UInt8], RPCError.Code, String)])
  func badImages(bytes: [UInt8], code: RPCError.Code, reason: String) async throws {
    try await withWorker { client, environment in
      let status = await failure { _ = try await client.process(bytes) }
      #expect(status?.code == code)
      #expect(status?.details.first?.errorInfo?.reason == reason)
      #expect(environment.memory.used == 0)
    }
  }

  @Test("refuses an unknown preset")
  func presets() async throws {
    try await withWorker { client, _ in
      let unknown = await failure { _ = try await client.process(Fixture.bytes("photo.png"), preset: "nope") }
      #expect(unknown?.code == .invalidArgument)
      #expect(unknown?.details.compactMap(\.badRequest).first?.violations.first?.field == "preset")
    }
  }

  @Test("fits a byte limit and reports the quality, or refuses with the minimum size reached")
  func byteLimit() async throws {
    try await withWorker { client, environment in
      let widget = try await client.process(Fixture.bytes("photo.png"), preset: "widget")
      #expect(widget.report?.compressionQuality == 0.8)
      let limited = try await client.process(Fixture.bytes("photo-420.jpg")) { $0.maxBytes = 5000 }
      let report = try #require(limited.report)
      #expect(limited.bytes.count <= 5000 && report.compressionQuality < 1 && report.hasCompressionQuality)
      let status = await failure { _ = try await client.process(Fixture.bytes("photo-420.jpg")) { $0.maxBytes = 5 } }
      #expect(status?.code == .failedPrecondition)
      let violation = status?.details.compactMap(\.preconditionFailure).first?.violations.first
      #expect(violation?.subject == "max_bytes" && violation?.description.contains("max_bytes is 5") == true)
      #expect(environment.memory.used == 0)
    }
  }

  @Test("reaches a similarity and reports it, or refuses a lossless format, naming the field")
  func similarity() async throws {
    try await withWorker { client, environment in
      let result = try await client.process(Fixture.bytes("photo.png")) {
        $0.targetSimilarity = 60
        $0.preferredFormat = .jpeg
      }
      let report = try #require(result.report)
      #expect(report.similarity >= 60 && report.compressionQuality < 1 && report.warnings.isEmpty)
      #expect(try await client.process(Fixture.bytes("photo.png")).report?.hasSimilarity == false)
      let status = await failure {
        _ = try await client.process(Fixture.bytes("photo.png")) { $0.targetSimilarity = 60 }
      }
      #expect(status?.code == .invalidArgument)
      let violation = status?.details.compactMap(\.badRequest).first?.violations.first
      #expect(violation?.field.hasSuffix("target_similarity") == true)
      #expect(environment.memory.used == 0)
    }
  }

  @Test("refuses an image above a limit, naming the limit and the value")
  func limits() async throws {
    var limits = WorkerLimits.defaults
    limits.image.maxPixels = 1000
    try await withWorker(limits: limits) { client, _ in
      let status = await failure { _ = try await client.process(Fixture.bytes("photo-420.jpg")) }
      #expect(status?.code == .failedPrecondition)
      #expect(status?.message.contains("1000") == true && status?.message.contains("38400") == true)
    }
    limits = WorkerLimits.defaults
    limits.image.maxScans = 2
    try await withWorker(limits: limits) { client, _ in
      let status = await failure {
        _ = try await client.process(Fixture.bytes("photo-progressive.jpg")) { $0.compressionQuality = 0.5 }
      }
      let limit = ["limit_name": "max_scans", "limit": "2", "value": "3"]
      #expect(status?.details.first?.errorInfo?.metadata == limit)
      let violation = status?.details.compactMap(\.preconditionFailure).first?.violations.first
      #expect(violation?.subject == "max_scans")
    }
    try await withWorker(memoryLimit: 50_000) { client, _ in
      let status = await failure { _ = try await client.process(Fixture.bytes("photo-420.jpg")) }
      #expect(status?.code == .failedPrecondition)
      #expect(status?.details.first?.errorInfo?.metadata["limit"] == "50000")
    }
  }

  @Test("refuses work when the queue is full, and reports when to retry")
  func fullQueue() async throws {
    var limits = WorkerLimits.defaults
    limits.maxWaitingImages = 0
    try await withWorker(limits: limits, memoryLimit: 10 << 20) { client, environment in
      let buffered = try await environment.memory.reserve(10 << 20, cancellation: .init())
      let status = await failure { _ = try await client.process(Fixture.bytes("photo-420.jpg")) }
      #expect(status?.code == .resourceExhausted)
      #expect(status?.details.contains { $0.retryInfo != nil } == true)
      #expect(buffered.byteCount == 10 << 20)
    }
  }

  @Test("refuses new work after a drain")
  func draining() async throws {
    let drain = DrainState()
    try await withWorker(drain: drain) { client, _ in
      drain.begin()
      drain.cancelWork()
      let status = await failure { _ = try await client.process(Fixture.bytes("photo.png")) }
      #expect(status?.code == .unavailable && status?.details.first?.errorInfo?.reason == "DRAINING")
    }
  }

  @Test("traces a server span with one span for each stage below it")
  func spans() async throws {
    let tracer = InMemoryTracer()
    try await withWorker(tracer: tracer) { client, _ in
      _ = try await client.process(Fixture.bytes("photo-420.jpg"), preset: "favicon")
    }
    let spans = tracer.finishedSpans
    let server = try #require(spans.first { $0.kind == .server })
    #expect(server.operationName == "imageworker.v1.ImageWorkerService/ProcessImage")
    #expect(server.attributes.get("rpc.response.status_code") == "OK".toSpanAttribute())
    for name in ["decode", "resize", "encode"] {
      let stages = spans.filter { $0.operationName == name }
      #expect(stages.count == 1 && stages.first?.parentSpanID == server.spanID, "\(name)")
    }
  }
}
