internal import ServiceLifecycle
internal import WorkerOperations

/// A service with a listener, whose error names the options of its address.
struct ListeningService<Base: Service>: Service {
  private let base: Base
  private let address: ListenAddress
  private let options: ListenError.Options

  init(_ base: Base, at address: ListenAddress, options: ListenError.Options) {
    self.base = base
    self.address = address
    self.options = options
  }

  func run() async throws {
    do { try await base.run() } catch {
      throw ListenError.isOfSystem(error) ? ListenError(error, address: address, options: options) : error
    }
  }
}
