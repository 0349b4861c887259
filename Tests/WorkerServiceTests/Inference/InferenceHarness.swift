import CoreMetrics
import Foundation
import GRPCCore
import GRPCInProcessTransport
import ImagePipeline
import SwiftProtobuf
import Tracing
import WorkerProtocol
import WorkerService

typealias InferenceClient = Inference_GRPCInferenceService.Client<InProcessTransport.Client>

private let presets = """
  presets:
    classifier:
      description: The input of a classifier.
      max_width: 32
      max_height: 24
      allow_upscale: true
      resize_mode: fill
      preferred_format: raw
      tensor: {element_type: f32, layout: chw, normalization: imagenet}
    detector: {max_width: 40, max_height: 40, pad: true, tensor: {element_type: f16}}
    bounded: {max_width: 32, max_height: 32, tensor: {channels: gray, element_type: bf16}}
    raw: {preferred_format: raw}
    contradictory: {preferred_format: jpeg, max_bytes: 1000, tensor: {}}
  """

/// Runs `body` with a client of the models of a service in this process, and with one of its images.
func withModels(
  limits: WorkerLimits = .defaults, memoryLimit: Int = 256 << 20, tracer: any Tracer = NoOpTracer(),
  metrics: any MetricsFactory = NOOPMetricsHandler.instance, helpers: HelperPool? = nil, isReady: Bool = true,
  _ body: (InferenceClient, Client, WorkerEnvironment) async throws -> Void
) async throws {
  let catalog = PresetCatalog().adding(try PresetFile(yaml: presets, name: "presets.yaml").presets)
  let environment = WorkerEnvironment(
    limits: limits, presets: catalog, memoryLimit: memoryLimit, threadCount: 2, helpers: helpers, metrics: metrics
  ).with { $0.tracer = tracer }
  let transport = InProcessTransport()
  let service = InferenceService(environment: environment, version: "1.2.3") { isReady }
  try await withGRPCServer(
    transport: transport.server, services: [service, ImageWorkerService(environment: environment)]
  ) { _ in
    try await withGRPCClient(transport: transport.client) { client in
      try await body(InferenceClient(wrapping: client), Client(wrapping: client), environment)
    }
  }
}

extension Inference_ModelInferRequest {
  /// A request as Triton's client sends it.
  static func raw(_ model: String, _ images: [[UInt8]], outputs: [String] = []) -> Self {
    .with { request in
      request.modelName = model
      request.inputs = [
        .with { ($0.name, $0.datatype, $0.shape) = ("image", "BYTES", [Int64(images.count)]) }
      ]
      request.outputs = outputs.map { name in .with { $0.name = name } }
      request.rawInputContents = [elements(images)]
    }
  }
}

/// Serializes the elements of a tensor of type BYTES.
func elements(_ values: [[UInt8]]) -> Data {
  values.reduce(into: Data()) { bytes, value in
    bytes += (0..<4).map { UInt8(truncatingIfNeeded: value.count >> (8 * $0)) } + value
  }
}

extension Inference_ModelInferResponse {
  /// The rows of the tensor.
  var rows: [[UInt8]] {
    let bytes = [UInt8](rawOutputContents.first ?? Data())
    let count = Int(outputs.first?.shape.first ?? 0)
    return (0..<count).map { Array(bytes[$0 * bytes.count / count..<($0 + 1) * bytes.count / count]) }
  }
}
