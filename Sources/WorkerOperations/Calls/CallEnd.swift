internal import GRPCCore
internal import NIOCore
internal import ServiceContextModule
internal import Synchronization

/// Tells once how a call ended.
///
/// A call whose response is let go of before it was produced, which happens when its client has left, ended as
/// cancelled: nobody else would say so. If its deadline had passed by then, that is why its client left.
final class CallEnd: Sendable {
  private let cancellation: ServerContext.RPCCancellationHandle
  private let deadline: CallDeadline?
  private let report: Mutex<(@Sendable (RPCError.Code?, (any Error)?) -> Void)?>

  /// - `context`: the call's.
  /// - `metadata`: what the client sent with it.
  /// - `report`: called once, with the code (`nil` for OK) and the error that was thrown, if one was.
  init(
    _ context: ServerContext, _ metadata: Metadata,
    _ report: @escaping @Sendable (RPCError.Code?, (any Error)?) -> Void
  ) {
    cancellation = context.cancellation
    deadline = CallDeadline(metadata)
    self.report = Mutex(report)
  }

  deinit { finish(.cancelled, nil) }

  func succeed() { finish(nil, nil) }

  func fail(_ error: any Error) { finish(Self.code(error, isCancelled: cancellation.isCancelled), error) }

  /// The code that a call ended with: cancelled, where what it threw is no more than that its client was gone.
  static func code(_ error: any Error, isCancelled: Bool) -> RPCError.Code {
    let code = RPCError.Code(of: error)
    guard let error = error as? RPCError else { return code }
    // A call that is cancelled as soon as it begins has no handle yet that says so.
    if code == .unavailable, error.message.hasPrefix("Stream unexpectedly closed") { return .cancelled }
    // UNAVAILABLE is what the transport throws when it finds the client gone; the worker's own is no `RPCError`.
    let isLost = code == .unavailable || error.cause is ChannelError || error.cause is NIOAsyncWriterError
    let isClientGone = isCancelled && isLost
    return isClientGone ? .cancelled : code
  }

  private func finish(_ code: RPCError.Code?, _ error: (any Error)?) {
    // Taken under the lock, called outside it.
    guard let report = self.report.withLock({ $0.take() }) else { return }
    report(code == .cancelled && deadline?.hasPassed() == true ? .deadlineExceeded : code, error)
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
