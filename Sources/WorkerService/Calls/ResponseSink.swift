internal import GRPCCore

/// Writes parts as responses.
///
/// Parts that are available together are written together, because each write wakes the connection's event loop.
///
/// Buffered parts are not written if their image fails: a header without a result is of no use.
final class ResponseSink<Response: Sendable>: ResultSink {
  private let writer: RPCWriter<Response>
  private let response: (ResultPart) -> Response
  private var waiting: [Response] = []

  /// The maximum number of buffered responses: 8 chunks are 512 KiB, which a connection accepts at a time.
  private let maxWaitingCount = 8

  /// Creates a sink that writes to `writer`.
  ///
  /// - `response`: returns the message that contains a part.
  init(_ writer: RPCWriter<Response>, response: @escaping (ResultPart) -> Response) {
    self.writer = writer
    self.response = response
  }

  func send(_ part: ResultPart) async throws {
    waiting.append(response(part))
    guard !part.isMoreReady || waiting.count == maxWaitingCount else { return }
    let ready = waiting
    waiting = []
    try await writer.write(contentsOf: ready)
  }
}
