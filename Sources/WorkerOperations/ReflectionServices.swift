public import GRPCCore

/// Both versions of server reflection, over the descriptors of everything this worker serves.
public struct ReflectionServices: Sendable {
  public let v1: ReflectionV1Service
  public let v1Alpha: ReflectionV1AlphaService

  /// Full names of the services that reflection lists, sorted.
  public let serviceNames: [String]

  /// - Throws: when the built-in descriptors can't be read: a defect of the build.
  public init() throws {
    let index = try DescriptorIndex()
    v1 = ReflectionV1Service(index: index)
    v1Alpha = ReflectionV1AlphaService(index: index)
    serviceNames = index.services
  }

  public var all: [any RegistrableRPCService] { [v1, v1Alpha] }
}
