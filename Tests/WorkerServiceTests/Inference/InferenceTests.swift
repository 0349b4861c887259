import Admission
import CoreMetrics
import Foundation
import GRPCCore
import GRPCInProcessTransport
import GRPCProtobuf
import ImageCodecs
import ImagePipeline
import InMemoryTracing
import SwiftProtobuf
import TestSupport
import Testing
import Tracing
import WorkerOperations
import WorkerProtocol
import WorkerTelemetry

@testable import WorkerService

@Suite("Models", .timeLimit(.minutes(15)))
struct InferenceTests {
  private typealias Request = Inference_ModelInferRequest

  private static let photos = ["photo-420.jpg", "photo.png", "photo-odd.jpg"].map { Fixture.bytes($0) }

  @Test("are the presets with tensor options, with the shapes of their results")
  func metadata() async throws {
    try await withModels { models, _, _ in
      let classifier = try await models.modelMetadata(.with { $0.name = "classifier" })
      #expect(classifier.name == "classifier" && classifier.versions == ["1"] && classifier.platform != "")
      #expect(classifier.properties == ["description": "The input of a classifier."])
      #expect(classifier.inputs.map(\.name) == ["image"] && classifier.inputs.map(\.datatype) == ["BYTES"])
      #expect(classifier.inputs[0].shape == [-1])
      #expect(classifier.outputs.map(\.name) == ["tensor", "error", "content_box", "image_size"])
      #expect(classifier.outputs.map(\.datatype) == ["FP32", "BYTES", "INT32", "INT32"])
      #expect(classifier.outputs.map(\.shape) == [[-1, 3, 24, 32], [-1], [-1, 4], [-1, 2]])
      for (name, datatype, shape) in [("detector", "FP16", [-1, 40, 40, 3]), ("bounded", "BF16", [-1, -1, -1, 1])] {
        let model = try await models.modelMetadata(.with { ($0.name, $0.version) = (name, "1") })
        #expect(model.outputs[0].shape == shape.map { Int64($0) } && model.outputs[0].datatype == datatype)
      }
      for name in ["classifier", "detector", "bounded"] {
        #expect(try await models.modelReady(.with { $0.name = name }).ready)
      }
      for name in ["raw", "favicon", "", "no-such", "contradictory"] {
        #expect(try await !models.modelReady(.with { $0.name = name }).ready)
      }
      #expect(try await !models.modelReady(.with { ($0.name, $0.version) = ("classifier", "2") }).ready)
      let unknown = await failure { _ = try await models.modelMetadata(.with { $0.name = "clasifier" }) }
      #expect(unknown?.details.first?.errorInfo?.reason == "UNKNOWN_PRESET")
      #expect(unknown?.message.contains("classifier, detector, bounded, contradictory") == true)
      let version = await failure {
        _ = try await models.modelMetadata(.with { ($0.name, $0.version) = ("bounded", "2") })
      }
      #expect(version?.details.compactMap(\.badRequest).first?.violations.first?.field == "version")
    }
  }

  @Test("report the worker", arguments: [true, false])
  func server(isReady: Bool) async throws {
    try await withModels(isReady: isReady) { models, _, _ in
      #expect(try await models.serverLive(.init()).live)
      #expect(try await models.serverReady(.init()).ready == isReady)
      #expect(try await models.modelReady(.with { $0.name = "classifier" }).ready == isReady)
      let metadata = try await models.serverMetadata(.init())
      #expect(metadata.name == "image-worker" && metadata.version == "1.2.3" && metadata.extensions == [])
    }
  }

  @Test("return the rows that ProcessImage returns", arguments: ["classifier", "detector"])
  func rows(model: String) async throws {
    try await withModels { models, client, environment in
      var expected: [[UInt8]] = []
      for photo in Self.photos {
        expected.append(try await client.process(photo, preset: model) { $0.preferredFormat = .raw }.bytes)
      }
      // More than are processed at a time.
      let count = 20
      let images = (0..<count).map { Self.photos[$0 % 3] }
      var request = Request.raw(model, images)
      request.id = "an id"
      let response = try await models.modelInfer(request)
      #expect(response.modelName == model && response.modelVersion == "1" && response.id == "an id")
      let metadata = try await models.modelMetadata(.with { $0.name = model })
      #expect(response.outputs.map(\.name) == ["tensor"] && response.rawOutputContents.count == 1)
      #expect(response.outputs[0].shape == [Int64(count)] + metadata.outputs[0].shape.dropFirst())
      #expect(response.outputs[0].datatype == metadata.outputs[0].datatype)
      #expect(response.rows == (0..<count).map { expected[$0 % 3] })
      request.inputs[0].shape.append(1)
      request.inputs[0].contents.bytesContents = images.map { Data($0) }
      request.rawInputContents = []
      #expect(try await models.modelInfer(request).rows == response.rows)
      #expect(environment.memory.used == 0)
      try await waitUntil("the responses are released") { environment.memory.buffered == 0 }
    }
  }

  @Test("fail with the index and the reason of an image that fails, and cancel the others")
  func errorOfImage() async throws {
    let registry = MetricRegistry()
    try await withModels(metrics: registry) { models, _, environment in
      let images = [Self.photos[0], Array("no image".utf8), Self.photos[1]]
      let error = try #require(await failure { _ = try await models.modelInfer(.raw("classifier", images)) })
      #expect(error.code == .unimplemented && error.message.hasPrefix("image 1: "))
      let info = try #require(error.details.compactMap(\.errorInfo).first)
      #expect(info.reason == "UNKNOWN_FORMAT" && info.metadata["image_index"] == "1")
      try await waitUntil("the tensor is released") { environment.memory.buffered == 0 }
      #expect(environment.memory.used == 0)
      let series = registry.collect().filter { $0.description.name == "imageworker.images" }.flatMap(\.series)
      let outcomes = series.flatMap { $0.dimensions.map(\.value) }
      #expect(outcomes.contains("unknown_format") && !outcomes.contains("cancelled"))
    }
  }

  @Test("return errors and rows of zeros if the client asks for the output")
  func errorsAsOutput() async throws {
    try await withModels { models, client, _ in
      let photo = Self.photos[0]
      let expected = try await client.process(photo, preset: "classifier").bytes
      let images = [Array("no image".utf8), photo, [], Array(photo.dropLast(3000)), photo]
      let response = try await models.modelInfer(.raw("classifier", images, outputs: ["error", "tensor"]))
      #expect(response.outputs.map(\.name) == ["tensor", "error"] && response.outputs[1].shape == [5])
      let zeros = [UInt8](repeating: 0, count: expected.count)
      #expect(response.rows == [zeros, expected, zeros, zeros, expected])
      try #require(response.rawOutputContents.count == 2)
      var (rest, texts) = (response.rawOutputContents[1], [String]())
      while !rest.isEmpty {
        let count = rest.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
        texts.append(String(decoding: rest.dropFirst(4).prefix(count), as: UTF8.self))
        rest = rest.dropFirst(4 + count)
      }
      let reasons = texts.map { String($0.prefix { $0 != ":" }) }
      #expect(reasons == ["UNKNOWN_FORMAT", "", "EMPTY_IMAGE", "TRUNCATED_IMAGE", ""])
      // Only the outputs that the client asks for are sent.
      let errors = try await models.modelInfer(.raw("classifier", images, outputs: ["error"]))
      #expect(errors.outputs == [response.outputs[1]] && errors.rawOutputContents == [response.rawOutputContents[1]])
      let tensor = try await models.modelInfer(.raw("classifier", [photo], outputs: ["tensor"]))
      #expect(tensor.outputs.map(\.name) == ["tensor"] && tensor.rows == [expected])
      let failing = [Array(photo.dropLast(3000)), [1]]
      let all = await failure { _ = try await models.modelInfer(.raw("classifier", failing, outputs: ["error"])) }
      #expect(all?.message.hasPrefix("image 0: ") == true)
    }
  }

  @Test("return where results show their images, and the sizes of these")
  func boxes() async throws {
    try await withModels { models, client, _ in
      let images = [Self.photos[0], Array("no image".utf8), Self.photos[2]]
      let response = try await models.modelInfer(
        .raw("detector", images, outputs: ["image_size", "error", "content_box"]))
      #expect(response.outputs.map(\.name) == ["error", "content_box", "image_size"])
      #expect(response.outputs.map(\.shape) == [[3], [3, 4], [3, 2]])
      var expected: (boxes: [Int], sizes: [Int]) = ([], [])
      for photo in [Self.photos[0], Self.photos[2]] {
        let result = try await client.process(photo, preset: "detector") { $0.preferredFormat = .raw }
        let (box, size) = (try #require(result.header?.tensor.content), try #require(result.report?.input))
        #expect(box.width < 40 || box.height < 40)
        expected.boxes += [box.x, box.y, box.width, box.height].map(Int.init)
        expected.sizes += [size.width, size.height].map(Int.init)
      }
      expected.boxes.insert(contentsOf: [0, 0, 0, 0], at: 4)
      expected.sizes.insert(contentsOf: [0, 0], at: 2)
      try #require(response.rawOutputContents.count == 3)
      #expect(Self.integers(response.rawOutputContents[1]) == expected.boxes)
      #expect(Self.integers(response.rawOutputContents[2]) == expected.sizes)
    }
  }

  private static func integers(_ bytes: Data) -> [Int] {
    bytes.withUnsafeBytes { bytes in
      stride(from: 0, to: bytes.count, by: 4).map {
        Int(Int32(littleEndian: bytes.loadUnaligned(fromByteOffset: $0, as: Int32.self)))
      }
    }
  }

  @Test("refuse images whose results have other shapes")
  func shapes() async throws {
    try await withModels { models, _, _ in
      let same = try await models.modelInfer(.raw("bounded", [Self.photos[0], Self.photos[0]]))
      #expect(same.outputs[0].shape == [2, 21, 32, 1])
      let images = [Self.photos[0], Array("P6 30 30 255\n".utf8) + noiseSamples(30 * 30 * 3)]
      let error = await failure { _ = try await models.modelInfer(.raw("bounded", images)) }
      #expect(error?.code == .invalidArgument && error?.message.contains("has the shape [") == true)
      #expect(error?.message.contains("allow_upscale") == true && error?.message.contains("[21, 32, 1]") == true)
    }
  }

  @Test("refuse tensors above the limit of a message, and those that the memory has no room for")
  func limits() async throws {
    var limits = WorkerLimits.defaults
    limits.maxMessageByteCount = 100_000
    let rowByteCount = 32 * 24 * 3 * 4
    try await withModels(limits: limits) { models, _, environment in
      let images = [[UInt8]](repeating: Fixture.bytes("gray.png"), count: 100_000 / rowByteCount + 1)
      _ = try await models.modelInfer(.raw("classifier", Array(images.dropLast())))
      let error = try #require(await failure { _ = try await models.modelInfer(.raw("classifier", images)) })
      #expect(error.code == .failedPrecondition && error.message.contains("max_message_bytes of 100000"))
      #expect(error.message.hasPrefix("the tensor of \(images.count) images has \(images.count * rowByteCount) bytes"))
      let info = try #require(error.details.compactMap(\.errorInfo).first)
      #expect(info.metadata["limit_name"] == "max_message_bytes" && info.metadata["limit"] == "100000")
      // A refusal of the call, even if errors of images are an output.
      let asOutput = await failure {
        _ = try await models.modelInfer(.raw("classifier", images, outputs: ["tensor", "error"]))
      }
      #expect(asOutput?.message == error.message)
      try await waitUntil("the tensors are released") { environment.memory.buffered == 0 }
      // Others use all of the half.
      let others = try ResultMemory(environment.memory.reservationLimit, of: environment.memory)
      let full = await failure { _ = try await models.modelInfer(.raw("classifier", [Self.photos[0]])) }
      #expect(full?.code == .resourceExhausted && full?.details.compactMap(\.retryInfo).first != nil)
      withExtendedLifetime(others) {}
    }
  }

  private static let refused: [(field: String, change: @Sendable (inout Request) -> Void)] = [
    ("model_version", { $0.modelVersion = "2" }),
    ("parameters", { $0.parameters = ["priority": .with { $0.int64Param = 1 }] }),
    ("id", { $0.id = String(repeating: "i", count: 1025) }),
    ("inputs", { $0.inputs.append($0.inputs[0]) }),
    ("inputs", { $0.inputs = [] }),
    ("inputs[0].name", { $0.inputs[0].name = "INPUT0" }),
    ("inputs[0].datatype", { $0.inputs[0].datatype = "UINT8" }),
    ("inputs[0].shape", { $0.inputs[0].shape = [] }),
    ("inputs[0].shape", { $0.inputs[0].shape = [0] }),
    ("inputs[0].shape", { $0.inputs[0].shape = [.min] }),
    ("inputs[0].shape", { $0.inputs[0].shape = [1025] }),
    ("inputs[0].shape", { $0.inputs[0].shape = [1, 2] }),
    ("inputs[0].shape", { $0.inputs[0].shape = [1, 1, 1] }),
    (
      "inputs[0].parameters",
      { $0.inputs[0].parameters = ["shared_memory_region": .with { $0.stringParam = "a" }] }
    ),
    ("outputs[0].name", { $0.outputs = [.with { $0.name = "OUTPUT0" }] }),
    ("outputs[1].name", { $0.outputs = [.with { $0.name = "tensor" }, .with { $0.name = "tensor" }] }),
    (
      "outputs[0].parameters",
      {
        $0.outputs = [.with { ($0.name, $0.parameters) = ("tensor", ["classification": .with { $0.int64Param = 5 }]) }]
      }
    ),
    ("raw_input_contents", { $0.rawInputContents = [] }),
    ("raw_input_contents", { $0.rawInputContents.append(Data()) }),
    ("raw_input_contents[0]", { $0.rawInputContents[0] = Data() }),
    ("raw_input_contents[0]", { $0.rawInputContents[0] += [1, 2, 3] }),
    ("raw_input_contents[0]", { $0.rawInputContents[0] += [255, 255, 255, 255, 1] }),
    ("raw_input_contents[0]", { $0.rawInputContents[0] += [0, 0, 0, 0] }),
    ("raw_input_contents[0]", { $0.rawInputContents[0].removeLast() }),
    ("inputs[0].contents", { $0.inputs[0].contents.bytesContents = [Data()] }),
    (
      "inputs[0].contents.bytes_contents",
      { ($0.inputs[0].contents.uintContents, $0.rawInputContents) = ([1], []) }
    ),
  ]

  @Test("refuse requests that are not those of images, naming the field")
  func refusals() async throws {
    try await withModels { models, _, environment in
      for (field, change) in Self.refused {
        var request = Request.raw("classifier", [Self.photos[0]])
        change(&request)
        let error = try #require(await failure { _ = try await models.modelInfer(request) })
        #expect(error.code == .invalidArgument && error.message.hasPrefix(field), "\(error.message)")
        #expect(error.details.compactMap(\.errorInfo).first?.metadata["field"] == field)
      }
      #expect(environment.threadQueue.waitingCount == 0 && environment.memory.buffered == 0)
    }
  }

  @Test("have a span for each image")
  func spans() async throws {
    let tracer = InMemoryTracer()
    try await withModels(tracer: tracer) { models, _, _ in
      _ = try await models.modelInfer(.raw("classifier", Self.photos))
      let items = tracer.finishedSpans.filter { $0.operationName == "item" }
      #expect(items.count == 3)
      for index in 0..<3 {
        let item = items.first { $0.attributes.get("imageworker.item_id") == String(index).toSpanAttribute() }
        let stages = tracer.finishedSpans.filter { $0.operationName == "decode" && $0.parentSpanID == item?.spanID }
        #expect(stages.count == 1, "\(index)")
      }
    }
  }

  @Test("refuse callers that may not use the preset, and those without a quota")
  func callers() async throws {
    let policies = [
      CallerPolicy(
        name: "a", presets: ["detector"], quotas: [CallerQuota(.images, per: .hour, amount: 1)])
    ]
    let catalog = PresetCatalog().adding([
      Preset(
        name: "classifier", description: "",
        configuration: ProcessingConfiguration(maxWidth: 9, tensor: .init())),
      Preset(
        name: "detector", description: "", configuration: ProcessingConfiguration(maxWidth: 9, tensor: .init())),
    ])
    let environment = WorkerEnvironment(presets: catalog, threadCount: 1).with {
      $0.callers = CallerAccounts(policies, metrics: NOOPMetricsHandler.instance)
      $0.callerName = { _ in "a" }
    }
    let service = InferenceService(environment: environment, version: "") { true }
    let transport = InProcessTransport()
    try await withGRPCServer(
      transport: transport.server, services: [service], interceptors: [TracingInterceptor(tracer: NoOpTracer())]
    ) { _ in
      try await withGRPCClient(transport: transport.client) { client in
        let models = InferenceClient(wrapping: client)
        let forbidden = await failure { _ = try await models.modelInfer(.raw("classifier", [Self.photos[0]])) }
        #expect(forbidden?.code == .permissionDenied)
        #expect(try await !models.modelReady(.with { $0.name = "classifier" }).ready)
        _ = try await models.modelInfer(.raw("detector", [Self.photos[0]]))
        let many = await failure {
          _ = try await models.modelInfer(.raw("detector", Array(repeating: Self.photos[0], count: 8)))
        }
        #expect(many?.details.compactMap(\.errorInfo).first?.reason == "QUOTA_EXCEEDED")
      }
    }
  }

  @Test("have a method each")
  func methods() {
    var router = RPCRouter<InProcessTransport.Server>()
    InferenceService(environment: WorkerEnvironment(threadCount: 1), version: "") { true }.registerMethods(
      with: &router)
    #expect(Set(router.methods) == Set(Inference_GRPCInferenceService.Method.descriptors))
    #expect(InferenceService.name == "inference.GRPCInferenceService")
  }
}
