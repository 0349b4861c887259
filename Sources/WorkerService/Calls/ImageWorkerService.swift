package import Admission
package import GRPCCore
internal import FoundationEssentials
internal import GRPCProtobuf
package import ImagePipeline
package import WorkThreads
package import WorkerProtocol

/// The service `imageworker.v1.ImageWorkerService`.
package struct ImageWorkerService: Imageworker_V1_ImageWorkerService.SimpleServiceProtocol {
  let environment: WorkerEnvironment

  /// Creates the service for one worker.
  package init(environment: WorkerEnvironment) {
    self.environment = environment
  }

  package func processImage(
    request: Imageworker_V1_ProcessImageRequest,
    response: RPCWriter<Imageworker_V1_ProcessImageResponse>,
    context: ServerContext
  ) async throws {
    try await environment.serve(oneImage: true) { cancellation in
      try environment.limits.check(messageByteCount: request.image.count)
      let renditions = try environment.renditions(of: request)
      let sink = ResponseSink(
        response, resultCount: renditions.count, response: Imageworker_V1_ProcessImageResponse.init)
      var caller = environment.imageCaller(peer: context.remotePeer, deadline: environment.currentDeadline)
      caller.isPromised = environment.memory.receivesMessages
      let job = PreviewedJob(
        renditions,
        from: WholeImage(request.image, isCharged: environment.memory.receivesMessages),
        to: sink,
        admission: environment.memory, environment: environment, cancellation: cancellation, caller: caller)
      do { try await job.run() } catch {
        try? await sink.finish()
        throw error
      }
      try await sink.finish()
    }
  }

  package func batchProcess(
    request: RPCAsyncSequence<Imageworker_V1_BatchProcessRequest, any Error>,
    response: RPCWriter<Imageworker_V1_BatchProcessResponse>,
    context: ServerContext
  ) async throws {
    try await environment.serve { cancellation in
      let stream = BatchStream(
        environment: environment, responses: BatchResponses(writer: response), cancellation: cancellation,
        connection: context.remotePeer)
      try await stream.run(request.map { [environment] in BatchPart($0, environment: environment) })
    }
  }

  package func inspectImage(
    request: Imageworker_V1_InspectImageRequest, context: ServerContext
  ) async throws -> Imageworker_V1_InspectImageResponse {
    try await environment.serve { cancellation in
      try environment.limits.check(messageByteCount: request.image.count)
      var configuration = try environment.configuration(preset: request.preset, overrides: request.configuration)
      if request.hasFacts { configuration.facts = request.facts }
      let auxiliary = try environment.auxiliaryImages(request.auxiliaryImages, beside: request.image)
        .used(by: configuration)
      let (planned, caller) = (configuration, environment.imageCaller(peer: context.remotePeer))
      let findsFacts = planned.facts ?? false
      let charged = try environment.currentCaller?.beginImage()
      charged?.use(byteCount: request.image.count + auxiliary.receivedByteCount)
      let plan = try await inspect(request.image, planned, auxiliary, caller, cancellation)
      let facts =
        findsFacts ? try await environment.facts(of: request.image, planned, caller, charged, cancellation) : nil
      return try Imageworker_V1_InspectImageResponse(plan, facts: facts)
    }
  }

  /// Plans an image from its header.
  private func inspect(
    _ bytes: Data, _ configuration: ProcessingConfiguration, _ auxiliary: AuxiliaryImages, _ caller: ImageCaller,
    _ cancellation: Cancellation
  ) async throws -> PlannedImage {
    defer { environment.threadQueue.offerExpress() }
    return try await withTaskExecutorPreference(environment.expressExecutor) {
      try await environment.inspect(bytes, configuration, auxiliary, caller, cancellation)
    }
  }

  package func listPresets(
    request: Imageworker_V1_ListPresetsRequest, context: ServerContext
  ) async throws -> Imageworker_V1_ListPresetsResponse {
    var response = Imageworker_V1_ListPresetsResponse()
    let caller = environment.currentCaller
    response.presets = try environment.presets.presets.filter { caller?.mayUse(preset: $0.name) ?? true }
      .map(Imageworker_V1_Preset.init)
    return response
  }
}

extension ImageWorkerService {
  /// The paths of the methods that receive whole images in one message, and process them.
  private static let wholeImagePaths = paths([
    Imageworker_V1_ImageWorkerService.Method.ProcessImage.descriptor,
    Inference_GRPCInferenceService.Method.ModelInfer.descriptor,
  ])

  /// The paths of the methods whose messages contain images.
  package static let imagePaths = wholeImagePaths.union(
    paths([
      Imageworker_V1_ImageWorkerService.Method.BatchProcess.descriptor,
      Imageworker_V1_ImageWorkerService.Method.InspectImage.descriptor,
    ]))

  /// The paths of the methods with any number of messages.
  package static let streamingPaths = paths([Imageworker_V1_ImageWorkerService.Method.BatchProcess.descriptor])

  private static func paths(_ methods: [MethodDescriptor]) -> Set<String> {
    Set(methods.map { "/\($0.fullyQualifiedMethod)" })
  }

  /// Decides about a call before its message is received.
  ///
  /// - Parameters:
  ///   - path: The path of the method; calls of methods that receive no whole image are accepted.
  ///   - caller: The client.
  ///   - connection: The connection as the memory of messages knows it.
  /// - Returns: A promise to release when the message has arrived, or the reason why it is not worth receiving.
  package func expect(
    _ path: String, of caller: ImageCaller, connection: UInt64
  ) -> Result<Claim?, PipelineError> {
    guard Self.wholeImagePaths.contains(path) else { return .success(nil) }
    do throws(PipelineError) {
      let upload = try environment.memory.expectUpload(of: connection, deadline: caller.deadline)
      let image = try environment.threadQueue.expect(caller)
      return .success(Claim { withExtendedLifetime((upload, image)) {} })
    } catch {
      environment.metrics.failed(error, isCancelled: false)
      return .failure(error)
    }
  }
}

extension ImageWorkerService {
  /// Registers every method as the generated code does, except that requests with images use
  /// `ImageRequestDeserializer`.
  package func registerMethods<Transport: ServerTransport>(with router: inout RPCRouter<Transport>) {
    typealias Method = Imageworker_V1_ImageWorkerService.Method
    router.registerHandler(
      forMethod: Method.ProcessImage.descriptor,
      deserializer: ImageRequestDeserializer<Imageworker_V1_ProcessImageRequest>(),
      serializer: ProtobufSerializer<Imageworker_V1_ProcessImageResponse>(),
      handler: { try await processImage(request: $0, context: $1) })
    router.registerHandler(
      forMethod: Method.BatchProcess.descriptor,
      deserializer: ImageRequestDeserializer<Imageworker_V1_BatchProcessRequest>(),
      serializer: ProtobufSerializer<Imageworker_V1_BatchProcessResponse>(),
      handler: { try await batchProcess(request: $0, context: $1) })
    router.registerHandler(
      forMethod: Method.InspectImage.descriptor,
      deserializer: ImageRequestDeserializer<Imageworker_V1_InspectImageRequest>(),
      serializer: ProtobufSerializer<Imageworker_V1_InspectImageResponse>(),
      handler: { try await inspectImage(request: $0, context: $1) })
    router.registerHandler(
      forMethod: Method.ListPresets.descriptor,
      deserializer: RequestDeserializer<Imageworker_V1_ListPresetsRequest>(),
      serializer: ProtobufSerializer<Imageworker_V1_ListPresetsResponse>(),
      handler: { try await listPresets(request: $0, context: $1) })
  }
}
