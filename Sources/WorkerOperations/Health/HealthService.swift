package import GRPCCore
internal import GRPCProtobuf
package import WorkerProtocol

/// The service `grpc.health.v1.Health`.
///
/// Source: the gRPC health checking protocol.
package struct HealthService: Grpc_Health_V1_Health.SimpleServiceProtocol {
  private let state: HealthState

  /// Creates a service that reports `state`.
  package init(state: HealthState) {
    self.state = state
  }

  /// Returns the status of one service, or throws NOT_FOUND for a service that the worker does not have.
  package func check(
    request: Grpc_Health_V1_HealthCheckRequest, context: ServerContext
  ) async throws -> Grpc_Health_V1_HealthCheckResponse {
    guard has(request.service) else {
      let name = String(decoding: request.service.utf8.prefix(128), as: UTF8.self)
      throw RPCError(code: .notFound, message: "there is no service \"\(name)\"")
    }
    return Grpc_Health_V1_HealthCheckResponse(state.status)
  }

  /// Returns the status of every service.
  package func list(
    request: Grpc_Health_V1_HealthListRequest, context: ServerContext
  ) async throws -> Grpc_Health_V1_HealthListResponse {
    var response = Grpc_Health_V1_HealthListResponse()
    let status = Grpc_Health_V1_HealthCheckResponse(state.status)
    response.statuses = Dictionary(uniqueKeysWithValues: state.services.map { ($0, status) })
    return response
  }

  /// Sends the status of one service, now and whenever it changes, until the client disconnects or the worker shuts
  /// down.
  package func watch(
    request: Grpc_Health_V1_HealthCheckRequest,
    response: RPCWriter<Grpc_Health_V1_HealthCheckResponse>,
    context: ServerContext
  ) async throws {
    guard has(request.service) else {
      // The protocol requires the watch to stay open because a service may be registered later. The worker never
      // registers one.
      var unknown = Grpc_Health_V1_HealthCheckResponse()
      unknown.status = .serviceUnknown
      try await response.write(unknown)
      try await context.cancellation.cancelled
      return try endWatch()
    }
    try await state.watch { statuses, continuation in
      try await withRPCCancellationHandler {
        for await status in statuses { try await response.write(Grpc_Health_V1_HealthCheckResponse(status)) }
      } onCancelRPC: {
        continuation.finish()
      }
    }
    try endWatch()
  }

  /// Whether the worker has a service.
  ///
  /// Longer names are not compared, which takes long for a letter with any number of accents.
  private func has(_ service: String) -> Bool { service.utf8.count <= 128 && state.services.contains(service) }

  /// Ends a watch with OK only when the worker shuts down, otherwise with CANCELLED.
  private func endWatch() throws {
    if state.isMeantToServe { throw RPCError(code: .cancelled, message: "the watch was cancelled") }
  }
}

extension Grpc_Health_V1_HealthCheckResponse {
  fileprivate init(_ status: HealthState.Status) {
    self.init()
    self.status = status == .serving ? .serving : .notServing
  }
}
