internal import GRPCCore
internal import WorkerProtocol

/// Writes parts as responses.
///
/// Parts that are available together are written together, because each write wakes the connection's event loop. The
/// last parts of a call are written by `finish`, on the event loop itself and together with the call's status.
///
/// Buffered parts are not written if their image fails: a header without a result is of no use.
final class ResponseSink<Response: Sendable>: ResultSink {
  private let writer: RPCWriter<Response>
  private let response: (ResultPart) -> Response
  private var waiting: [Response] = []
  /// The number of results that have not ended; `nil` if the last one does not end the call.
  private var resultsLeft: Int?

  /// The maximum number of buffered responses: 8 chunks are 512 KiB, which a connection accepts at a time.
  private let maxWaitingCount = 8

  /// Creates a sink that writes to `writer`.
  ///
  /// - Parameters:
  ///   - writer: The writer of the call's responses.
  ///   - resultCount: The number of results, without a preview, after which `finish` is called; `nil` if it is not
  ///     called.
  ///   - response: Returns the message that contains a part.
  init(_ writer: RPCWriter<Response>, resultCount: Int? = nil, response: @escaping (ResultPart) -> Response) {
    self.writer = writer
    self.response = response
    resultsLeft = resultCount
  }

  func send(_ part: ResultPart) async throws {
    waiting.append(response(part))
    if part.isLast, !part.rendition.isPreview, let left = resultsLeft { resultsLeft = left - 1 }
    let isMoreReady = part.isMoreReady || resultsLeft == 0
    guard !isMoreReady || waiting.count == maxWaitingCount else { return }
    try await write()
  }

  /// Writes the last parts once every result has ended.
  func finish() async throws {
    guard resultsLeft == 0, !waiting.isEmpty else { return }
    try await write()
  }

  private func write() async throws {
    let ready = waiting
    waiting = []
    try await writer.write(contentsOf: ready)
  }
}

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
