package import GRPCCore
internal import GRPCProtobuf
package import WorkerProtocol

/// The service `grpc.health.v1.Health`.
///
/// Source: the gRPC health checking protocol.
package struct HealthService: Grpc_Health_V1_Health.SimpleServiceProtocol {
  private let state: HealthState

  package init(state: HealthState) {
    self.state = state
  }

  /// The status of one service; NOT_FOUND for one that is not served here.
  package func check(
    request: Grpc_Health_V1_HealthCheckRequest, context: ServerContext
  ) async throws -> Grpc_Health_V1_HealthCheckResponse {
    guard state.services.contains(request.service) else {
      throw RPCError(code: .notFound, message: "there is no service \"\(request.service.prefix(128))\"")
    }
    return Grpc_Health_V1_HealthCheckResponse(state.status)
  }

  /// The status of every service.
  package func list(
    request: Grpc_Health_V1_HealthListRequest, context: ServerContext
  ) async throws -> Grpc_Health_V1_HealthListResponse {
    var response = Grpc_Health_V1_HealthListResponse()
    let status = Grpc_Health_V1_HealthCheckResponse(state.status)
    response.statuses = Dictionary(uniqueKeysWithValues: state.services.map { ($0, status) })
    return response
  }

  /// The status of one service now and whenever it changes, until the client leaves or the worker shuts down.
  package func watch(
    request: Grpc_Health_V1_HealthCheckRequest,
    response: RPCWriter<Grpc_Health_V1_HealthCheckResponse>,
    context: ServerContext
  ) async throws {
    guard state.services.contains(request.service) else {
      // The protocol wants the watch to stay open: the service might be registered later. Here none will be.
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

  /// A watch ends well only with the worker.
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
