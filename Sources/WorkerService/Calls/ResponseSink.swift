internal import GRPCCore

/// Writes parts as responses, those that are ready together in one go, as each write wakes the connection's event loop.
///
/// What waits for more when its image fails is never written: nobody needs the header of a result that does not come.
final class ResponseSink<Response: Sendable>: ResultSink {
  private let writer: RPCWriter<Response>
  private let response: (ResultPart) -> Response
  private var waiting: [Response] = []

  /// Of chunks half a megabyte, which is what a connection takes at a time.
  private let maxWaitingCount = 8

  /// - `response`: the message that holds a part.
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
