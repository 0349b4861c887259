package import GRPCCore
internal import GRPCProtobuf
internal import WorkerProtocol

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
      deserializer: ProtobufDeserializer<Imageworker_V1_ListPresetsRequest>(),
      serializer: ProtobufSerializer<Imageworker_V1_ListPresetsResponse>(),
      handler: { try await listPresets(request: $0, context: $1) })
  }
}
