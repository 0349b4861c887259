package import GRPCCore

/// Both versions of server reflection, for all services of this worker.
package struct ReflectionServices: Sendable {
  /// The service `grpc.reflection.v1.ServerReflection`.
  package let v1: ReflectionV1Service
  /// The service `grpc.reflection.v1alpha.ServerReflection`, for older clients.
  package let v1Alpha: ReflectionV1AlphaService

  /// Full names of the services that reflection lists, sorted.
  package let serviceNames: [String]

  /// Creates the services; throws if the embedded descriptors cannot be decoded, which is a defect of the build.
  package init() throws {
    let index = try DescriptorIndex()
    v1 = ReflectionV1Service(index: index)
    v1Alpha = ReflectionV1AlphaService(index: index)
    serviceNames = index.services
  }

  /// Both services, ready to register.
  package var all: [any RegistrableRPCService] { [v1, v1Alpha] }
}
