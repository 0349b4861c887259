internal import FoundationEssentials
package import GRPCCore
internal import GRPCProtobuf
internal import SwiftProtobuf
package import WorkerProtocol

/// The service `grpc.reflection.v1.ServerReflection`, for all services of this worker.
///
/// It also serves `grpc.reflection.v1alpha.ServerReflection` for older clients, whose messages are the same.
package struct ReflectionService: Grpc_Reflection_V1_ServerReflection.SimpleServiceProtocol {
  typealias Request = Grpc_Reflection_V1_ServerReflectionRequest
  typealias Response = Grpc_Reflection_V1_ServerReflectionResponse

  /// The method in both versions of the service.
  package static let methods = [
    Grpc_Reflection_V1_ServerReflection.Method.ServerReflectionInfo.descriptor,
    MethodDescriptor(
      service: ServiceDescriptor(fullyQualifiedService: "grpc.reflection.v1alpha.ServerReflection"),
      method: "ServerReflectionInfo", type: .bidirectionalStreaming),
  ]

  /// The paths of the method, as in `/package.Service/Method`.
  package static let paths = Set(methods.map { "/\($0.fullyQualifiedMethod)" })

  private let index: DescriptorIndex

  /// Creates the service.
  ///
  /// - Parameter services: The services of the contract that are not served.
  /// - Throws: If the embedded descriptors cannot be decoded, which is a defect of the build.
  package init(without services: Set<String> = []) throws { index = try DescriptorIndex(without: services) }

  /// Full names of the services that reflection lists, sorted.
  package var serviceNames: [String] { index.services }

  /// Registers the method under the names of both versions.
  package func registerMethods<Transport: ServerTransport>(with router: inout RPCRouter<Transport>) {
    for method in Self.methods {
      router.registerHandler(
        forMethod: method, deserializer: ProtobufDeserializer<Request>(), serializer: ProtobufSerializer<Response>(),
        handler: { try await serverReflectionInfo(request: $0, context: $1) })
    }
  }

  package func serverReflectionInfo(
    request: RPCAsyncSequence<Grpc_Reflection_V1_ServerReflectionRequest, any Error>,
    response: RPCWriter<Grpc_Reflection_V1_ServerReflectionResponse>,
    context: ServerContext
  ) async throws {
    var sent: Set<String> = []
    for try await question in request {
      var answer = answer(question, sent: &sent)
      answer.validHost = question.host
      answer.originalRequest = question
      try await response.write(answer)
    }
  }

  /// - `sent`: the names of the files that were sent on this stream, to which those of the answer are added.
  private func answer(_ question: Request, sent: inout Set<String>) -> Response {
    switch question.messageRequest {
    case .fileByFilename(let name): return files(index.file(named: name), orSay: "no file \(name)", &sent)
    case .fileContainingSymbol(let symbol):
      return files(index.file(containing: symbol), orSay: "no symbol \(symbol)", &sent)
    case .fileContainingExtension(let field):
      let (type, number) = (field.containingType, field.extensionNumber)
      return files(
        index.file(extending: type, number: number), orSay: "no extension \(number) of \(type)", &sent)
    case .allExtensionNumbersOfType(let type):
      guard index.hasMessage(type) else { return Self.failure(.notFound, "no message \(type)") }
      return .with {
        $0.allExtensionNumbersResponse.baseTypeName = type
        $0.allExtensionNumbersResponse.extensionNumber = index.extensionNumbers(of: type)
      }
    case .listServices:
      return .with { $0.listServicesResponse.service = index.services.map { name in .with { $0.name = name } } }
    case nil: return Self.failure(.invalidArgument, "the request has no message_request")
    }
  }

  /// Returns a file with its imports first, without those that were sent earlier on this stream.
  private func files(_ file: DescriptorIndex.File?, orSay message: String, _ sent: inout Set<String>) -> Response {
    guard let file else { return Self.failure(.notFound, message) }
    let files = index.closure(of: file, without: sent)
    sent.formUnion(files.map(\.name))
    return .with { $0.fileDescriptorResponse.fileDescriptorProto = files.map { Data($0.serialized) } }
  }

  private static func failure(_ code: RPCError.Code, _ message: String) -> Response {
    .with {
      $0.errorResponse.errorCode = Int32(code.rawValue)
      $0.errorResponse.errorMessage = message
    }
  }
}
