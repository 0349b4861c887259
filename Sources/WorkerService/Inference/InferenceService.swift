package import GRPCCore
internal import GRPCProtobuf
internal import ImagePipeline
internal import SwiftProtobuf
internal import WorkerProtocol

/// The service `inference.GRPCInferenceService` of the Open Inference Protocol (KServe v2), whose models are the presets with
/// tensor options.
package struct InferenceService: RegistrableRPCService {
  private typealias Method = Inference_GRPCInferenceService.Method

  /// The full name of the service.
  package static let name = Inference_GRPCInferenceService.descriptor.fullyQualifiedService
  /// The methods of the service.
  package static let methods = Inference_GRPCInferenceService.Method.descriptors

  private let environment: WorkerEnvironment
  private let version: String
  private let isReady: @Sendable () -> Bool

  /// Creates the service for one worker.
  ///
  /// - Parameters:
  ///   - environment: The configuration and the shared state of all calls.
  ///   - version: The version of the worker.
  ///   - isReady: Returns whether the worker serves.
  package init(environment: WorkerEnvironment, version: String, isReady: @escaping @Sendable () -> Bool) {
    self.environment = environment
    self.version = version
    self.isReady = isReady
  }

  /// Registers every method; the messages with images and with tensors are not copied.
  package func registerMethods<Transport: ServerTransport>(with router: inout RPCRouter<Transport>) {
    register(Method.ServerLive.descriptor, with: &router) { (_: Inference_ServerLiveRequest) in
      Inference_ServerLiveResponse.with { $0.live = true }
    }
    register(Method.ServerReady.descriptor, with: &router) { [isReady] (_: Inference_ServerReadyRequest) in
      Inference_ServerReadyResponse.with { $0.ready = isReady() }
    }
    register(Method.ServerMetadata.descriptor, with: &router) { [version] (_: Inference_ServerMetadataRequest) in
      Inference_ServerMetadataResponse.with { ($0.name, $0.version) = ("image-worker", version) }
    }
    register(Method.ModelReady.descriptor, with: &router) { (request: Inference_ModelReadyRequest) in
      let model = try? environment.model(named: request.name, version: request.version)
      return Inference_ModelReadyResponse.with { $0.ready = isReady() && model?.isReady ?? false }
    }
    register(Method.ModelMetadata.descriptor, with: &router) { (request: Inference_ModelMetadataRequest) in
      do {
        let model = try environment.model(named: request.name, version: request.version)
        return Inference_ModelMetadataResponse(model)
      } catch { throw WireError.status(any: error) }
    }
    router.registerHandler(
      forMethod: Method.ModelInfer.descriptor, deserializer: ImageRequestDeserializer<Inference_ModelInferRequest>(),
      serializer: ResponseMessageSerializer(), handler: Self.unary(infer))
  }

  private func register<Transport, Request: Message, Response: Message>(
    _ method: MethodDescriptor, with router: inout RPCRouter<Transport>,
    _ answer: @escaping @Sendable (Request) throws -> Response
  ) {
    router.registerHandler(
      forMethod: method, deserializer: RequestDeserializer<Request>(), serializer: ProtobufSerializer<Response>(),
      handler: Self.unary { request, _ in try answer(request) })
  }

  /// Returns a handler of calls with one request and one response.
  private static func unary<Request: Sendable, Response: Sendable>(
    _ answer: @escaping @Sendable (Request, ServerContext) async throws -> Response
  ) -> @Sendable (StreamingServerRequest<Request>, ServerContext) async throws -> StreamingServerResponse<Response> {
    { request, context in
      let request = try await ServerRequest(stream: request)
      return StreamingServerResponse(
        single: ServerResponse(message: try await answer(request.message, context)))
    }
  }

  @Sendable private func infer(
    _ wire: Inference_ModelInferRequest, _ context: ServerContext
  ) async throws -> ResponseMessage {
    try await environment.serve(oneImage: true) { cancellation in
      let model = try environment.model(named: wire.modelName, version: wire.modelVersion, prefix: "model_")
      let request = try InferenceRequest(wire)
      try environment.limits.check(messageByteCount: request.images.reduce(0) { $0 + $1.count })
      let caller = environment.imageCaller(peer: context.remotePeer, deadline: environment.currentDeadline)
      let job = InferenceJob(request, model, environment: environment, caller: caller, call: cancellation)
      let message = try await job.run()
      environment.keep(message.memory)
      return message
    }
  }
}
