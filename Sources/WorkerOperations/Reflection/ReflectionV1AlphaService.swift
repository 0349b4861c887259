internal import FoundationEssentials
package import GRPCCore
internal import GRPCProtobuf
internal import SwiftProtobuf
package import WorkerProtocol

/// The service `grpc.reflection.v1alpha.ServerReflection`.
///
/// It precedes v1 and is still used by older clients.
package struct ReflectionV1AlphaService: Grpc_Reflection_V1alpha_ServerReflection.SimpleServiceProtocol {
  private let index: DescriptorIndex

  init(index: DescriptorIndex) {
    self.index = index
  }

  package func serverReflectionInfo(
    request: RPCAsyncSequence<Grpc_Reflection_V1alpha_ServerReflectionRequest, any Error>,
    response: RPCWriter<Grpc_Reflection_V1alpha_ServerReflectionResponse>,
    context: ServerContext
  ) async throws {
    var stream = ReflectionStream(index: index)
    for try await question in request {
      var answer = Grpc_Reflection_V1alpha_ServerReflectionResponse(stream.answer(question.query))
      answer.validHost = question.host
      answer.originalRequest = question
      try await response.write(answer)
    }
  }
}

extension Grpc_Reflection_V1alpha_ServerReflectionRequest {
  fileprivate var query: ReflectionStream.Query {
    switch messageRequest {
    case .fileByFilename(let name): .file(name: name)
    case .fileContainingSymbol(let symbol): .fileContaining(symbol: symbol)
    case .fileContainingExtension(let field):
      .fileExtending(type: field.containingType, number: field.extensionNumber)
    case .allExtensionNumbersOfType(let type): .extensionNumbers(type: type)
    case .listServices: .services
    case nil: .nothing
    }
  }
}

extension Grpc_Reflection_V1alpha_ServerReflectionResponse {
  fileprivate init(_ answer: ReflectionStream.Answer) {
    self.init()
    switch answer {
    case .files(let files): fileDescriptorResponse.fileDescriptorProto = files.map { Data($0) }
    case .extensionNumbers(let type, let numbers):
      allExtensionNumbersResponse.baseTypeName = type
      allExtensionNumbersResponse.extensionNumber = numbers
    case .services(let names):
      listServicesResponse.service = names.map { name in .with { $0.name = name } }
    case .failure(let code, let message):
      errorResponse.errorCode = Int32(code.rawValue)
      errorResponse.errorMessage = message
    }
  }
}
