import Foundation
import GRPCCore
import GRPCInProcessTransport
import GRPCProtobuf
import SwiftProtobuf
import TestSupport
import Testing
import WorkerProtocol

@testable import WorkerService

@Suite("Requests with images")
struct ImageRequestTests {
  private static let image = Data((0..<40_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
  private static let configuration = Imageworker_V1_ProcessingConfiguration.with { $0.maxWidth = 640 }

  private static var process: Data {
    get throws {
      try Imageworker_V1_ProcessImageRequest.with {
        ($0.image, $0.preset, $0.configuration, $0.preview) = (image, "favicon", configuration, true)
      }.serializedData()
    }
  }

  private static var start: Data {
    get throws {
      try Imageworker_V1_BatchProcessRequest.with {
        $0.itemID = "a"
        $0.start = .with {
          ($0.image, $0.preset, $0.configuration) = (image, "favicon", configuration)
          ($0.preview, $0.previewKey) = (true, "key")
        }
      }.serializedData()
    }
  }

  private static var chunk: Data {
    get throws {
      try Imageworker_V1_BatchProcessRequest.with { ($0.itemID, $0.chunk) = ("a", image) }.serializedData()
    }
  }

  /// Requests of models, with their images in either place.
  private static var inferences: [[UInt8]] {
    get throws {
      var request = Inference_ModelInferRequest.raw("a", [Array(image), [1, 2, 3], []])
      let raw: [UInt8] = try request.serializedBytes()
      request.rawInputContents = []
      request.inputs[0].contents.bytesContents = [image, Data([1, 2, 3]), Data()]
      return [raw, try request.serializedBytes()]
    }
  }

  /// Checks that both parsers return the same message, or that both throw an error.
  private func expectSame<Request: ImageRequest & Equatable>(
    _: Request.Type, _ bytes: [UInt8], mayBeRefused: Bool = false
  ) {
    let usual = try? ProtobufDeserializer<Request>().deserialize(bytes) as Request
    let ours = Result { try ImageRequestDeserializer<Request>().deserialize(bytes) }
    if mayBeRefused, case .failure(let error as GoogleRPCStatus) = ours, error.message.contains(": it has ") { return }
    #expect((try? ours.get()) == usual)
  }

  @Test("have little besides images, also where they are damaged", arguments: [true, false])
  func limit(isDamaged: Bool) throws {
    let name = String(repeating: "x", count: RequestLimit.maxOtherByteCount)
    let filter = Imageworker_V1_Filter.with { $0.parameters = [name: 1] }
    let end: [UInt8] = isDamaged ? [0xFF] : []
    let process = Imageworker_V1_ProcessImageRequest.with { $0.configuration.filters = [filter] }
    let start = Imageworker_V1_BatchProcessRequest.with { $0.start.configuration.filters = [filter] }
    let named = Imageworker_V1_InspectImageRequest.with { $0.auxiliaryImages = [.with { $0.name = name }] }
    let model = Inference_ModelInferRequest.with { $0.inputs = [.with { $0.parameters = [name: .init()] }] }
    // Numbers take eight times as many bytes as they are sent in.
    let numbers = Inference_ModelInferRequest.with {
      $0.inputs = [.with { $0.contents.int64Contents = Array(repeating: 1, count: RequestLimit.maxOtherByteCount) }]
    }
    for deserialize in [
      {
        try ImageRequestDeserializer<Imageworker_V1_ProcessImageRequest>().deserialize(process.serializedBytes() + end)
      },
      { try ImageRequestDeserializer<Imageworker_V1_BatchProcessRequest>().deserialize(start.serializedBytes() + end) },
      { try ImageRequestDeserializer<Inference_ModelInferRequest>().deserialize(model.serializedBytes() + end) },
      {
        try ImageRequestDeserializer<Inference_ModelInferRequest>().deserialize(numbers.serializedBytes() + end)
      },
      { try ImageRequestDeserializer<Imageworker_V1_InspectImageRequest>().deserialize(named.serializedBytes() + end) },
    ] as [() throws -> any Message] {
      let error = #expect(throws: GoogleRPCStatus.self) { try deserialize() }
      #expect(error?.message.contains("besides its images; at most 262144 are accepted") == true)
    }
    let large = Imageworker_V1_ProcessImageRequest.with {
      $0.image = Data(count: 1 << 20)
      $0.auxiliaryImages = [.with { $0.image = Data(count: 1 << 20) }]
    }
    let bytes: [UInt8] = try large.serializedBytes()
    #expect(try ImageRequestDeserializer<Imageworker_V1_ProcessImageRequest>().deserialize(bytes) == large)
  }

  @Test("that cannot be decoded are named as in the contract")
  func undecodable() throws {
    for (name, deserialize) in [
      ("ProcessImageRequest", { try ImageRequestDeserializer<Imageworker_V1_ProcessImageRequest>().deserialize($0) }),
      ("BatchProcessRequest", { try ImageRequestDeserializer<Imageworker_V1_BatchProcessRequest>().deserialize($0) }),
      ("ListPresetsRequest", { try RequestDeserializer<Imageworker_V1_ListPresetsRequest>().deserialize($0) }),
    ] as [(String, ([UInt8]) throws -> any Message)] {
      for byteCount in [1, 40_000] {
        let error = #expect(throws: GoogleRPCStatus.self) {
          try deserialize([UInt8](repeating: 0xFF, count: byteCount))
        }
        #expect(error?.code == .invalidArgument && error?.details.first?.errorInfo?.reason == "INVALID_FIELD")
        #expect(error?.message == "the message cannot be decoded as imageworker.v1.\(name)")
      }
    }
  }

  @Test("are read as SwiftProtobuf reads them, whole, cut, repeated and joined")
  func sameAsUsual() throws {
    let other = try Imageworker_V1_ProcessImageRequest.with {
      ($0.image, $0.configuration.maxHeight) = (Data([1, 2, 3]), 480)
    }.serializedData()
    let (process, start, chunk) = (try Self.process, try Self.start, try Self.chunk)
    for bytes in [process, other + process, process + other, process + process] {
      expectSame(Imageworker_V1_ProcessImageRequest.self, Array(bytes))
      expectSame(Imageworker_V1_InspectImageRequest.self, Array(bytes))
    }
    for bytes in [start, chunk] { expectSame(Imageworker_V1_BatchProcessRequest.self, Array(bytes)) }
    let inferences = try Self.inferences
    for bytes in inferences + [
      inferences[0] + inferences[1], inferences[0] + inferences[0], inferences[1] + inferences[1],
    ] {
      expectSame(Inference_ModelInferRequest.self, bytes)
      for count in [1, 10, 40, 39_999, 40_010, bytes.count - 1] {
        expectSame(Inference_ModelInferRequest.self, Array(bytes.prefix(count)))
      }
    }
    for count in [0, 1, 2, 3, 5, 100, 39_999, 40_003, 40_004, 40_005, 40_010, 40_015] {
      expectSame(Imageworker_V1_ProcessImageRequest.self, Array(process.prefix(count)))
      expectSame(Imageworker_V1_BatchProcessRequest.self, Array(start.prefix(count)))
      expectSame(Imageworker_V1_BatchProcessRequest.self, Array(chunk.prefix(count)))
    }
  }

  @Test("keep their preview fields with a borrowed image")
  func previews() throws {
    let request = try ImageRequestDeserializer<Imageworker_V1_ProcessImageRequest>().deserialize(
      Array(try Self.process))
    #expect(request.preview && request.image == Self.image)
    let item = try ImageRequestDeserializer<Imageworker_V1_BatchProcessRequest>().deserialize(Array(try Self.start))
    #expect(item.start.preview && item.start.previewKey == "key" && item.start.image == Self.image)
  }

  /// Returns whether `image` points into `message` instead of a copy.
  private func isLent(_ image: Data, by message: [UInt8]) -> Bool {
    message.withUnsafeBytes { message in
      image.withUnsafeBytes { image in
        guard let start = message.baseAddress, let place = image.baseAddress else { return false }
        return place >= start && place + image.count <= start + message.count
      }
    }
  }

  @Test("borrow a large image, and copy a small one")
  func lending() throws {
    let (process, start, chunk) = (Array(try Self.process), Array(try Self.start), Array(try Self.chunk))
    let request = try ImageRequestDeserializer<Imageworker_V1_ProcessImageRequest>().deserialize(process)
    #expect(isLent(request.image, by: process))
    let inspection = try ImageRequestDeserializer<Imageworker_V1_InspectImageRequest>().deserialize(process)
    #expect(isLent(inspection.image, by: process))
    let items = ImageRequestDeserializer<Imageworker_V1_BatchProcessRequest>()
    #expect(isLent(try items.deserialize(start).start.image, by: start))
    #expect(isLent(try items.deserialize(chunk).chunk, by: chunk))
    let inferences = try Self.inferences
    let models = ImageRequestDeserializer<Inference_ModelInferRequest>()
    #expect(isLent(try models.deserialize(inferences[0]).rawInputContents[0], by: inferences[0]))
    let contents = try models.deserialize(inferences[1]).inputs[0].contents.bytesContents
    #expect(isLent(contents[0], by: inferences[1]) && isLent(contents[1], by: inferences[1]))
    let small: [UInt8] = try Imageworker_V1_ProcessImageRequest.with {
      $0.image = Self.image.prefix(16 * 1024 - 1)
    }.serializedBytes()
    let copy = try ImageRequestDeserializer<Imageworker_V1_ProcessImageRequest>().deserialize(small)
    #expect(!isLent(copy.image, by: small) && copy.image.count == 16 * 1024 - 1)
  }

  @Test("that are damaged are parsed or refused as by SwiftProtobuf")
  func damaged() throws {
    var random = SeededGenerator(seed: 14)
    let inferences = try Self.inferences
    let (process, start, chunk) = (Array(try Self.process), Array(try Self.start), Array(try Self.chunk))
    for _ in 0..<400 {
      func damage(_ bytes: [UInt8]) -> [UInt8] {
        var result = bytes
        for _ in 0..<Int.random(in: 1...3, using: &random) {
          // Positions of the fields' tags and lengths.
          let place = Int.random(in: 0..<24, using: &random)
          let index = Bool.random(using: &random) ? place : result.count - 1 - place
          result[index] = UInt8.random(in: .min ... .max, using: &random)
        }
        return result
      }
      expectSame(Imageworker_V1_ProcessImageRequest.self, damage(process), mayBeRefused: true)
      expectSame(Imageworker_V1_BatchProcessRequest.self, damage(start), mayBeRefused: true)
      expectSame(Imageworker_V1_BatchProcessRequest.self, damage(chunk), mayBeRefused: true)
      for bytes in inferences { expectSame(Inference_ModelInferRequest.self, damage(bytes), mayBeRefused: true) }
    }
  }

  @Test("of which copies would be needed are refused")
  func unusual() throws {
    let (process, start, chunk) = (try Self.process, try Self.start, try Self.chunk)
    let item = try Imageworker_V1_BatchProcessRequest.with { $0.itemID = "a" }.serializedData()
    let many = Array(repeating: [UInt8(0x78), 1], count: 1025).flatMap(\.self) + Array(process)
    let cases: [(bytes: [UInt8], reason: String)] = [
      (many, "it has more than 1024 fields"), (Array(process) + [0x7B, 0x7C], "it has groups"),
    ]
    for (bytes, reason) in cases {
      let error = #expect(throws: GoogleRPCStatus.self) {
        try ImageRequestDeserializer<Imageworker_V1_ProcessImageRequest>().deserialize(bytes)
      }
      #expect(error?.code == .invalidArgument && error?.message.hasSuffix(": \(reason)") == true)
    }
    for bytes in [start + chunk, chunk + start, start + start, chunk + [0x22, 0], item + chunk + chunk] {
      let error = #expect(throws: GoogleRPCStatus.self) {
        try ImageRequestDeserializer<Imageworker_V1_BatchProcessRequest>().deserialize(Array(bytes))
      }
      #expect(
        error?.code == .invalidArgument && error?.message.hasSuffix(": it has several parts, or contents") == true)
    }
  }

  @Test("borrow images of overlays, and the last of several images")
  func auxiliary() throws {
    let auxiliary = Imageworker_V1_AuxiliaryImage.with { ($0.name, $0.image) = ("logo", Self.image) }
    let small = Imageworker_V1_AuxiliaryImage.with { ($0.name, $0.image) = ("small", Data([1, 2, 3])) }
    let other = try Imageworker_V1_ProcessImageRequest.with {
      ($0.image, $0.auxiliaryImages) = (Data([9]), [auxiliary, small])
    }.serializedData()
    let bytes = Array(other + (try Self.process))
    expectSame(Imageworker_V1_ProcessImageRequest.self, bytes)
    let request = try ImageRequestDeserializer<Imageworker_V1_ProcessImageRequest>().deserialize(bytes)
    #expect(isLent(request.image, by: bytes) && request.auxiliaryImages == [auxiliary, small])
    #expect(isLent(request.auxiliaryImages[0].image, by: bytes))
    #expect(!isLent(request.auxiliaryImages[1].image, by: bytes))
  }

  @Test("keep the memory that they point into alive")
  func lifetime() throws {
    var request = try ImageRequestDeserializer<Imageworker_V1_ProcessImageRequest>().deserialize(
      Array(try Self.process))
    let image = request.image.dropFirst(100)
    request = Imageworker_V1_ProcessImageRequest()
    // Memory that was released too early would be reused and overwritten here.
    let others = (0..<64).map { _ in [UInt8](repeating: 0xEE, count: 40_000) }
    #expect(image == Self.image.dropFirst(100) && others.count == 64)
  }

  @Test("have a method each")
  func methods() async throws {
    try await withWorker { client, environment in
      let listed = try await client.listPresets(Imageworker_V1_ListPresetsRequest())
      #expect(!listed.presets.isEmpty)
      var router = RPCRouter<InProcessTransport.Server>()
      ImageWorkerService(environment: environment).registerMethods(with: &router)
      #expect(Set(router.methods) == Set(Imageworker_V1_ImageWorkerService.Method.descriptors))
    }
  }
}
