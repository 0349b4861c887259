package import GRPCCore

/// Both versions of server reflection, over the descriptors of everything this worker serves.
package struct ReflectionServices: Sendable {
  package let v1: ReflectionV1Service
  package let v1Alpha: ReflectionV1AlphaService

  /// Full names of the services that reflection lists, sorted.
  package let serviceNames: [String]

  /// - Throws: when the built-in descriptors can't be read: a defect of the build.
  package init() throws {
    let index = try DescriptorIndex()
    v1 = ReflectionV1Service(index: index)
    v1Alpha = ReflectionV1AlphaService(index: index)
    serviceNames = index.services
  }

  package var all: [any RegistrableRPCService] { [v1, v1Alpha] }
}
