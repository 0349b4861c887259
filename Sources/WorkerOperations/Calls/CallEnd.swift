internal import GRPCCore
internal import ServiceContextModule
internal import Synchronization

/// Tells once how a call ended.
///
/// A call whose response is let go of before it was produced, which happens when its client has left, ended as
/// cancelled: nobody else would say so.
final class CallEnd: Sendable {
  private let cancellation: ServerContext.RPCCancellationHandle
  private let report: Mutex<(@Sendable (RPCError.Code?, (any Error)?) -> Void)?>

  /// - `cancellation`: the call's.
  /// - `report`: called once, with the code (`nil` for OK) and the error that was thrown, if one was.
  init(
    _ cancellation: ServerContext.RPCCancellationHandle,
    _ report: @escaping @Sendable (RPCError.Code?, (any Error)?) -> Void
  ) {
    self.cancellation = cancellation
    self.report = Mutex(report)
  }

  deinit { finish(.cancelled, nil) }

  func succeed() { finish(nil, nil) }

  func fail(_ error: any Error) {
    let code = RPCError.Code(of: error)
    // UNAVAILABLE is what the transport throws when it finds the client gone; the worker's own is no `RPCError`.
    let isClientGone = code == .unavailable && error is RPCError && cancellation.isCancelled
    finish(isClientGone ? .cancelled : code, error)
  }

  private func finish(_ code: RPCError.Code?, _ error: (any Error)?) {
    // Taken under the lock, called outside it.
    let report = self.report.withLock { $0.take() }
    report?(code, error)
  }
}

extension StreamingServerResponse {
  /// This response, telling `end` when all of it was produced, or why not; `context` is current meanwhile.
  ///
  /// The handler of a streaming call returns before its work is done, which the response's producer does.
  func telling(_ end: CallEnd, context: ServiceContext? = ServiceContext.current) -> Self {
    var response = self
    switch response.accepted {
    case .failure(let error): end.fail(error)
    case .success(var contents):
      let produce = contents.producer
      contents.producer = { writer in
        try await ServiceContext.$current.withValue(context) {
          do {
            let metadata = try await produce(writer)
            end.succeed()
            return metadata
          } catch {
            end.fail(error)
            throw error
          }
        }
      }
      response.accepted = .success(contents)
    }
    return response
  }
}
