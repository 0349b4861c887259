import GRPCCore
import GRPCInProcessTransport
import GRPCProtobuf
import SwiftProtobuf
import Testing
import WorkerOperations
import WorkerProtocol

@Suite("Reflection", .timeLimit(.minutes(15)))
struct ReflectionTests {
  typealias Request = Grpc_Reflection_V1_ServerReflectionRequest
  typealias Response = Grpc_Reflection_V1_ServerReflectionResponse

  private func ask(_ requests: [Request]) async throws -> [Response] {
    let transport = InProcessTransport()
    var answers: [Response] = []
    try await withGRPCServer(transport: transport.server, services: [try ReflectionService()]) { _ in
      try await withGRPCClient(transport: transport.client) { client in
        let stub = Grpc_Reflection_V1_ServerReflection.Client(wrapping: client)
        answers = try await stub.serverReflectionInfo { writer in
          for request in requests { try await writer.write(request) }
        } onResponse: { response in
          var all: [Response] = []
          for try await message in response.messages { all.append(message) }
          return all
        }
      }
    }
    return answers
  }

  private func names(_ response: Response) throws -> [String] {
    try response.fileDescriptorResponse.fileDescriptorProto.map {
      try Google_Protobuf_FileDescriptorProto(serializedBytes: $0).name
    }
  }

  @Test(
    "finds the file of every kind of symbol, methods included",
    arguments: [
      "imageworker.v1.ImageWorkerService", "imageworker.v1.ImageWorkerService.ProcessImage",
      "imageworker.v1.ImageWorkerService/BatchProcess", "imageworker.v1.ProcessImageRequest",
      "imageworker.v1.ProcessImageRequest.image", "imageworker.v1.ProcessImageResponse.part",
      "imageworker.v1.Filter.ParametersEntry", "imageworker.v1.Filter.ParametersEntry.key",
      "imageworker.v1.OutputFormat", "imageworker.v1.OUTPUT_FORMAT_JPEG", ".imageworker.v1.Preset",
    ])
  func symbols(symbol: String) async throws {
    let answer = try await ask([.with { $0.fileContainingSymbol = symbol }])
    #expect(try names(answer[0]).last == "imageworker/v1/image_worker.proto")
    #expect(answer[0].originalRequest.fileContainingSymbol == symbol)
  }

  @Test("sends each file once on a stream, imports before what imports them")
  func onceEach() async throws {
    let answers = try await ask([
      .with { $0.fileContainingSymbol = "google.rpc.Status" },
      .with { $0.fileByFilename = "imageworker/v1/image_worker.proto" },
      .with { $0.fileContainingSymbol = "imageworker.v1.Preset" },
    ])
    #expect(try names(answers[0]) == ["google/protobuf/any.proto", "google/rpc/status.proto"])
    #expect(try names(answers[1]) == ["google/protobuf/duration.proto", "imageworker/v1/image_worker.proto"])
    #expect(try names(answers[2]) == [])
  }

  @Test("lists every service that is served")
  func services() async throws {
    let answers = try await ask([.with { $0.listServices = "" }])
    #expect(
      answers[0].listServicesResponse.service.map(\.name) == [
        "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection",
        "imageworker.v1.ImageWorkerService", "inference.GRPCInferenceService",
      ])
  }

  @Test("answers unknown symbols with NOT_FOUND, and continues")
  func notFound() async throws {
    let answers = try await ask([
      .with { $0.fileContainingSymbol = "no.Such" }, .with { $0.fileByFilename = "no.proto" },
      .with { $0.fileContainingExtension.containingType = "imageworker.v1.Preset" },
      .with { $0.allExtensionNumbersOfType = "no.Such" },
      .with { $0.allExtensionNumbersOfType = "imageworker.v1.ImageWorkerService" },
      .with { $0.allExtensionNumbersOfType = "imageworker.v1.Preset" },
    ])
    try #require(answers.count == 6)
    #expect(answers.prefix(5).allSatisfy { $0.errorResponse.errorCode == 5 })
    #expect(answers[5].allExtensionNumbersResponse.extensionNumber.isEmpty)
    #expect(answers[5].allExtensionNumbersResponse.baseTypeName == "imageworker.v1.Preset")
  }

  @Test("answers the older version of the service in the same way")
  func alpha() async throws {
    let transport = InProcessTransport()
    try await withGRPCServer(transport: transport.server, services: [try ReflectionService()]) { _ in
      try await withGRPCClient(transport: transport.client) { client in
        let request = StreamingClientRequest<Request> { writer in
          try await writer.write(.with { $0.fileContainingSymbol = "imageworker.v1.ImageWorkerService.InspectImage" })
        }
        try await client.bidirectionalStreaming(
          request: request, descriptor: ReflectionService.methods[1],
          serializer: ProtobufSerializer<Request>(), deserializer: ProtobufDeserializer<Response>(), options: .defaults
        ) { response in
          var count = 0
          for try await message in response.messages {
            count += message.fileDescriptorResponse.fileDescriptorProto.count
          }
          #expect(count == 4)
        }
      }
    }
  }
}
