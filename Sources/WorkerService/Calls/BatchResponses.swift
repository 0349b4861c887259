internal import GRPCCore
internal import WorkerProtocol

/// Writes the results of a batch stream's items as responses.
struct BatchResponses: Sendable {
  let writer: RPCWriter<Imageworker_V1_BatchProcessResponse>

  /// Returns a sink that writes one item's results.
  func sink(of itemID: String) -> any ResultSink {
    ResponseSink(writer) { Imageworker_V1_BatchProcessResponse(itemID: itemID, $0) }
  }

  /// Writes an item's error.
  func write(_ error: any Error, of itemID: String) async throws {
    try await writer.write(Imageworker_V1_BatchProcessResponse(itemID: itemID, error: error))
  }
}
