import Foundation
import GRPCProtobuf
import ImagePipeline
import Logging
import ResultCache
import SwiftProtobuf
import TestSupport
import Testing
import WorkerProtocol
import WorkerService

/// The orientation of a PNG whose eXIf chunk follows its image data.
@Suite("Orientation behind the image data", .timeLimit(.minutes(15)))
struct LateOrientationTests {
  private static let photo = Fixture.bytes("photo.png")
  private static let block = Container.exif(orientation: 6)
  private static let late = Container.png(photo, appending: [("eXIf", block)])
  private static let early = Container.png(photo, adding: [("eXIf", block)])

  /// Requests the image in one message, with a preview.
  private static func request(
    _ image: [UInt8], rotation: UInt32 = 0, alwaysEncode: Bool = false
  ) -> Imageworker_V1_ProcessImageRequest {
    .with {
      $0.image = Data(image)
      $0.preview = true
      $0.configuration.rotation = rotation
      $0.configuration.alwaysEncode = alwaysEncode
    }
  }

  private static func upload(_ image: [UInt8], byteCount: Int) -> [Imageworker_V1_BatchProcessRequest] {
    let chunks = stride(from: 0, to: image.count, by: byteCount).map {
      Imageworker_V1_BatchProcessRequest.chunk("a", image[$0..<min($0 + byteCount, image.count)])
    }
    return [.start("a")] + chunks + [.end("a")]
  }

  private static func codes(_ result: Collected?) -> [Imageworker_V1_WarningCode]? {
    result?.report?.warningDetails.map(\.code).filter { $0 != .largerThanImage }
  }

  /// Runs `body` with a client of a worker without isolation, and of one with it.
  private static func withWorkers(_ body: (Client) async throws -> Void) async throws {
    try await withWorker { client, _ in try await body(client) }
    if Isolated.isSupported {
      try await withWorker(helpers: Isolated.pool()) { client, _ in try await body(client) }
    }
  }

  @Test("an image in one message has the result of one whose orientation comes first")
  func whole() async throws {
    // The large one has more windows than one request to a helper may lend, before and behind its data.
    let filler = ("prVt", [UInt8](repeating: 7, count: 5 << 20))
    let large = Container.png(
      Container.png(Self.photo, adding: [filler]), appending: [filler, ("eXIf", Self.block)])
    try await Self.withWorkers { client in
      for image in [Self.late, large] {
        for (rotation, alwaysEncode) in [(0, false), (0, true), (270, false)] as [(UInt32, Bool)] {
          let expected = try await client.processRenditions(
            Self.request(Self.early, rotation: rotation, alwaysEncode: alwaysEncode))
          let results = try await client.processRenditions(
            Self.request(image, rotation: rotation, alwaysEncode: alwaysEncode))
          #expect(results[""]?.bytes.isEmpty == false && results["~preview"]?.bytes.isEmpty == false)
          for id in ["", "~preview"] {
            #expect(results[id]?.bytes == expected[id]?.bytes && results[id]?.header == expected[id]?.header)
            #expect(results[id]?.report?.input.orientation == 6 && Self.codes(results[id]) == [])
          }
          #expect(results[""]?.report?.passthrough == (rotation == 270))
        }
        let inspected = try await client.inspectImage(.with { $0.image = Data(image) })
        let expected = try await client.inspectImage(.with { $0.image = Data(Self.early) })
        #expect(inspected.info == expected.info && inspected.output == expected.output)
        #expect(inspected.info.orientation == 6 && inspected.output.width < inspected.output.height)
      }
      let item = try await client.batch([.start("b", image: Self.late)])["b"]
      #expect(item?.report?.input.orientation == 6 && Self.codes(item) == [])
    }
  }

  @Test(
    "an upload in chunks ignores the orientation with a warning, however fast it arrives", arguments: [500, 1 << 20])
  func upload(byteCount: Int) async throws {
    try await Self.withWorkers { client in
      let result = try await client.batch(Self.upload(Self.late, byteCount: byteCount))["a"]
      #expect(result?.report?.input.orientation == 1 && Self.codes(result) == [.orientationIgnored])
    }
  }

  @Test("the result of an upload that ignores the orientation is not cached", arguments: [500, 1 << 20])
  func cache(byteCount: Int) async throws {
    let cache = try ResultCache(limits: CacheLimits(), logger: Logger(label: "test"))
    try await withWorker(cache: cache) { client, _ in
      _ = try await client.batch(Self.upload(Self.late, byteCount: byteCount))
      let whole = try await client.process(Self.late)
      #expect(whole.report?.cacheHit == false && whole.report?.input.orientation == 6)
      #expect(try await client.process(Self.late).report?.cacheHit == true)
    }
  }

  @Test("hostile chunks leave the image as it is, with the warnings of an upload")
  func hostile() async throws {
    let broken: [UInt8] = Array("MM\0*".utf8) + [0, 0, 0, 8, 0, 9]
    var damaged = Self.late
    damaged[damaged.count - 13] ^= 1  // the checksum of eXIf
    let cases: [([UInt8], UInt32, [Imageworker_V1_WarningCode])] = [
      (Container.png(Self.photo, appending: [("eXIf", [])]), 1, [.exifIgnored]),
      (Container.png(Self.photo, appending: [("eXIf", broken)]), 1, [.exifIgnored]),
      (damaged, 1, [.damageRepaired]),
      (Container.png(Self.late, adding: [("eXIf", Container.exif(orientation: 3))]), 3, [.orientationIgnored]),
      (Container.png(Self.late, appending: [("eXIf", Container.exif(orientation: 3))]), 6, [.orientationIgnored]),
    ]
    try await Self.withWorkers { client in
      for (image, orientation, codes) in cases {
        let result = try await client.process(image) { $0.alwaysEncode = true }
        #expect(result.report?.input.orientation == orientation && Self.codes(result) == codes)
      }
      let long = Array(Self.photo.dropLast(12)) + [0x80, 0, 0, 0] + Array("eXIf".utf8) + Self.block
      let status = await failure { _ = try await client.process(long) { $0.alwaysEncode = true } }
      #expect(status?.details.first?.errorInfo?.reason == "CORRUPT_IMAGE")
    }
  }
}
