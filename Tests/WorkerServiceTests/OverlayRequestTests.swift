import Admission
import Foundation
import GRPCCore
import ImageCodecs
import ImagePipeline
import Logging
import ResultCache
import SwiftProtobuf
import TestSupport
import Testing
import WorkerProtocol
import WorkerService

@Suite("Requests with overlays")
struct OverlayRequestTests {
  private static let image = Fixture.bytes("photo-420.jpg")
  private static let red = encodedPlain([255, 0, 0])
  private static let green = encodedPlain([0, 255, 0])

  /// A PNG of 16x16 pixels of one color.
  private static func encodedPlain(_ color: [UInt8]) -> [UInt8] {
    do {
      return try encodedImage((0..<256).flatMap { _ in color }, width: 16, height: 16, pixelFormat: .rgb8)
    } catch { return [] }
  }

  private static func auxiliary(_ name: String, _ bytes: [UInt8]) -> Imageworker_V1_AuxiliaryImage {
    .with {
      $0.name = name
      $0.image = Data(bytes)
    }
  }

  private static func request(
    _ images: [Imageworker_V1_AuxiliaryImage], _ name: String = "logo",
    _ change: (inout Imageworker_V1_ProcessImageRequest) -> Void = { _ in }
  ) -> Imageworker_V1_ProcessImageRequest {
    .with {
      $0.image = Data(image)
      $0.configuration = configuration(name)
      $0.auxiliaryImages = images
      change(&$0)
    }
  }

  private static func configuration(_ name: String) -> Imageworker_V1_ProcessingConfiguration {
    .with {
      $0.maxWidth = 100
      $0.preferredFormat = .png
      $0.overlays = [
        .with {
          $0.image = name
          $0.gravity = .northWest
        }
      ]
    }
  }

  /// The color of the pixel in the top left corner.
  private static func corner(_ result: Collected?) throws -> [Double] {
    try Pixels.decode(try #require(result).bytes).color(x: 2, y: 2)
  }

  @Test("take images from the request, and else from the operator's directory", arguments: [false, true])
  func sources(isIsolated: Bool) async throws {
    if isIsolated, !Isolated.isSupported { return }
    try await withWorker(helpers: isIsolated ? Isolated.pool() : nil) { client, environment in
      let own = try await client.processRenditions(Self.request([Self.auxiliary("logo", Self.red)]))
      #expect(try Self.corner(own[""]) == [255, 0, 0])
      environment.overlays.replace(with: [
        AuxiliaryImage(ofOperator: Self.green, name: "logo"), AuxiliaryImage(ofOperator: Self.green, name: "mark"),
      ])
      #expect(try Self.corner(await client.processRenditions(Self.request([]))[""]) == [0, 255, 0])
      let both = try await client.processRenditions(Self.request([Self.auxiliary("logo", Self.red)]))
      #expect(try Self.corner(both[""]) == [255, 0, 0])
      let other = try await client.processRenditions(Self.request([Self.auxiliary("logo", Self.red)], "mark"))
      #expect(try Self.corner(other[""]) == [0, 255, 0])
      #expect(environment.memory.used == 0)
    }
  }

  @Test("draw images that are larger than a window of a helper", .enabled(if: Isolated.isSupported, Isolated.absence))
  func large() async throws {
    // Noise, so that it does not become smaller.
    let side = 1600
    let noise = try encodedImage(noiseSamples(side * side * 3), width: side, height: side, pixelFormat: .rgb8)
    try #require(noise.count > 5 << 20)
    var results: [[UInt8]] = []
    for helpers in [nil, Isolated.pool()] {
      try await withWorker(helpers: helpers) { client, environment in
        let request = Self.request([Self.auxiliary("logo", noise)]) { $0.configuration.overlays[0].scale = 0.5 }
        results.append(try #require(await client.processRenditions(request)[""]).bytes)
        #expect(environment.memory.used == 0)
      }
    }
    #expect(results[0] == results[1] && !results[0].isEmpty)
  }

  @Test("have a preview, renditions, batch items and chunked uploads with the same overlays", arguments: [false, true])
  func everywhere(isIsolated: Bool) async throws {
    if isIsolated, !Isolated.isSupported { return }
    try await withWorker(helpers: isIsolated ? Isolated.pool() : nil) { client, _ in
      let images = [Self.auxiliary("logo", Self.red), Self.auxiliary("mark", Self.green)]
      let previewed = try await client.processRenditions(Self.request(images) { $0.preview = true })
      #expect(try Self.corner(previewed[""]) == [255, 0, 0])
      if let preview = previewed["~preview"], preview.report != nil {
        #expect(try Self.corner(preview)[0] > 200)
      }
      let renditions = try await client.processRenditions(
        Self.request(images) { request in
          request.clearConfiguration()
          request.renditions = ["logo", "mark"].map { name in
            Imageworker_V1_Rendition.named(name) { $0 = Self.configuration(name) }
          }
        })
      #expect(try Self.corner(renditions["logo"]) == [255, 0, 0] && Self.corner(renditions["mark"]) == [0, 255, 0])
      let start = Imageworker_V1_BatchItemStart.with {
        $0.configuration = Self.configuration("mark")
        $0.auxiliaryImages = images
      }
      func part(_ id: String, _ part: Imageworker_V1_BatchProcessRequest.OneOf_Part)
        -> Imageworker_V1_BatchProcessRequest
      {
        .with {
          $0.itemID = id
          $0.part = part
        }
      }
      var whole = start
      whole.image = Data(Self.image)
      let half = Self.image.count / 2
      let items = try await client.batch([
        part("whole", .start(whole)), part("chunks", .start(start)), part("chunks", .chunk(Data(Self.image[..<half]))),
        part("chunks", .chunk(Data(Self.image[half...]))), part("chunks", .end(Imageworker_V1_BatchItemEnd())),
      ])
      #expect(try Self.corner(items["whole"]) == [0, 255, 0] && Self.corner(items["chunks"]) == [0, 255, 0])
      let inspection = try await client.inspectImage(
        .with {
          $0.image = Data(Self.image)
          $0.configuration = Self.configuration("logo")
          $0.auxiliaryImages = images
        })
      #expect(inspection.output.width == 100 && inspection.workingSetBytes > 0)
    }
  }

  @Test("are cached by the bytes of their overlays")
  func cache() async throws {
    let cache = try ResultCache(limits: CacheLimits(), logger: Logger(label: "test"))
    try await withWorker(cache: cache) { client, environment in
      func hit(_ images: [Imageworker_V1_AuxiliaryImage]) async throws -> Bool? {
        try await client.processRenditions(Self.request(images))[""]?.report?.cacheHit
      }
      var hits: [Bool?] = []
      environment.overlays.replace(with: [AuxiliaryImage(ofOperator: Self.green, name: "logo")])
      hits.append(try await hit([]))
      hits.append(try await hit([]))
      hits.append(try await hit([Self.auxiliary("logo", Self.red)]))
      hits.append(try await hit([Self.auxiliary("logo", Self.red), Self.auxiliary("unused", Self.green)]))
      environment.overlays.replace(with: [AuxiliaryImage(ofOperator: Self.red, name: "logo")])
      hits.append(try await hit([]))
      environment.overlays.replace(with: [AuxiliaryImage(ofOperator: Self.green, name: "logo")])
      hits.append(try await hit([]))
      #expect(hits == [false, true, false, true, true, true])
    }
  }

  // MARK: Texts

  private static func text(_ text: String, font: String = "DejaVu Sans") -> Imageworker_V1_ProcessImageRequest {
    request([]) { request in
      request.configuration.overlays[0].image = ""
      request.configuration.overlays[0].text = .with {
        $0.text = text
        $0.font = font
        $0.size = 30
        $0.boxColor = .with { $0.red = 255 }
      }
    }
  }

  @Test("draw texts, in helpers as in the worker itself", .enabled(if: TextOverlay.isSupported, "built without Pango"))
  func texts() async throws {
    var results: [[UInt8]] = []
    // The second text is drawn by a helper that has drawn one; the letters come from several fonts.
    for helpers in [nil, Isolated.isSupported ? Isolated.pool() : nil] {
      try await withWorker(helpers: helpers) { client, environment in
        for text in ["Hello", "Hello, wörld\nשלום 😀 𝔘 กข", "Hello"] {
          let result = try #require(await client.processRenditions(Self.text(text))[""])
          #expect(try Self.corner(result) == [255, 0, 0])
          results.append(result.bytes)
        }
        #expect(environment.memory.used == 0)
      }
    }
    #expect(results[0] != results[1] && results[0] == results[2] && results[..<3] == results[3...])
  }

  @Test("name the field of a text that is wrong", .enabled(if: TextOverlay.isSupported, "built without Pango"))
  func textErrors() async throws {
    for helpers in [nil, Isolated.isSupported ? Isolated.pool() : nil] {
      try await withWorker(helpers: helpers) { client, _ in
        for (request, field) in [
          (Self.text("a\u{1}"), "text.text"), (Self.text("a", font: "No such family"), "text.font"),
          (Self.text("a", font: "Sans 12"), "text.font"),
        ] {
          let start = Imageworker_V1_BatchItemStart.with {
            $0.image = Data(Self.image)
            $0.configuration = request.configuration
          }
          let items = try await client.batch([
            .with {
              $0.itemID = "item"
              $0.start = start
            }
          ])
          let error = try #require(items["item"]?.errors.first)
          #expect(try error.reasonAndField == ["INVALID_FIELD", "start.configuration.overlays[0].\(field)"])
        }
      }
    }
  }

  private static let wrong: [(images: [Imageworker_V1_AuxiliaryImage], field: String)] = [
    ([auxiliary("other", red)], "configuration.overlays[0].image"),
    ([auxiliary("logo", Array("text".utf8))], "configuration.overlays[0].image"),
    ([auxiliary("", red)], "auxiliary_images[0].name"),
    ([auxiliary(String(repeating: "a", count: 256), red)], "auxiliary_images[0].name"),
    ([auxiliary("logo", red), auxiliary("logo", green)], "auxiliary_images[1].name"),
    ([auxiliary("logo", [])], "auxiliary_images[0].image"),
    ((0..<9).map { auxiliary("\($0)", red) }, "auxiliary_images"),
  ]

  @Test("name the field that is wrong", arguments: wrong.indices, [false, true])
  func errors(index: Int, isIsolated: Bool) async throws {
    if isIsolated, !Isolated.isSupported { return }
    let (images, field) = Self.wrong[index]
    try await withWorker(helpers: isIsolated ? Isolated.pool() : nil) { client, _ in
      let start = Imageworker_V1_BatchItemStart.with {
        $0.image = Data(Self.image)
        $0.configuration = Self.configuration("logo")
        $0.auxiliaryImages = images
      }
      let items = try await client.batch([
        .with {
          $0.itemID = "item"
          $0.start = start
        }
      ])
      let error = try #require(items["item"]?.errors.first)
      #expect(try error.reasonAndField == ["INVALID_FIELD", "start.\(field)"])
    }
  }

  @Test("cannot replace the operator's overlays where only presets are accepted")
  func onlyPresets() async throws {
    try await withWorker(takesOnlyPresets: true) { client, _ in
      let request = Self.request([Self.auxiliary("logo", Self.red)]) { $0.clearConfiguration() }
      await #expect(throws: (any Error).self) { try await client.processRenditions(request) }
    }
  }

  @Test("count the bytes of auxiliary images with the message")
  func limits() async throws {
    var limits = WorkerLimits.defaults
    limits.maxMessageByteCount = Self.image.count + Self.red.count - 1
    try await withWorker(limits: limits) { client, _ in
      await #expect(throws: (any Error).self) {
        try await client.processRenditions(Self.request([Self.auxiliary("logo", Self.red)]))
      }
      _ = try await client.processRenditions(Self.request([]) { $0.configuration.overlays = [] })
    }
  }
}
