internal import GRPCCore
internal import NIOCore
internal import NIOHTTP2
internal import ServiceContextModule
internal import Synchronization

/// Reports exactly once how a call ended.
///
/// A call that the listener has ended, ends as its client was told. A response can be released before it is produced,
/// which happens when the client has disconnected. Nothing else reports the end of such a call, so it ends as CANCELLED
/// here, or as DEADLINE_EXCEEDED if its deadline had already passed.
final class CallEnd: Sendable {
  private let cancellation: ServerContext.RPCCancellationHandle
  private let record: CallRecord?
  private let waitsForStream: Bool
  private let report: Mutex<(@Sendable (RPCError.Code?, (any Error)?) -> Void)?>

  /// Creates the reporter for one call.
  ///
  /// - Parameters:
  ///   - context: The context of the call.
  ///   - record: The call in the listener; `nil` without one.
  ///   - waitsForStream: Whether to report when the client has received the response, or lost it.
  ///   - report: Called once, with the status code (`nil` for OK) and the error that was thrown, if any.
  init(
    _ context: ServerContext, _ record: CallRecord?, waitsForStream: Bool = false,
    _ report: @escaping @Sendable (RPCError.Code?, (any Error)?) -> Void
  ) {
    cancellation = context.cancellation
    self.record = record
    self.waitsForStream = waitsForStream
    self.report = Mutex(report)
  }

  deinit { finish(.cancelled, nil) }

  func succeed() { finish(nil, nil) }

  func fail(_ error: any Error) {
    let isCancelled = cancellation.isCancelled || record?.isClientGone ?? false
    finish(Self.code(error, isCancelled: isCancelled), error)
  }

  /// Reports nothing: somebody else does.
  func disregard() { report.withLock { $0 = nil } }

  /// Returns the status code of a call that failed with `error`; an error caused only by the client's disconnection
  /// counts as CANCELLED.
  static func code(_ error: any Error, isCancelled: Bool) -> RPCError.Code {
    let code = RPCError.Code(of: error)
    let rpcError = error as? RPCError
    // A call that is cancelled as soon as it begins does not have a cancellation handle that reports it yet.
    if rpcError?.code == .unavailable, rpcError?.message.hasPrefix("Stream unexpectedly closed") == true {
      return .cancelled
    }
    // What the transport itself throws, as while a message arrives, is no `RPCError`.
    let cause = rpcError?.cause ?? error
    // The next part of a request was awaited when the client reset its stream or closed the connection.
    if cause is NIOHTTP2Errors.StreamClosed { return .cancelled }
    // The transport throws UNAVAILABLE when it finds that the client has disconnected. The worker's own UNAVAILABLE
    // errors are not `RPCError`s.
    let isLost =
      rpcError?.code == .unavailable || cause is ChannelError || cause is NIOAsyncWriterError || cause is IOError
    return isCancelled && isLost ? .cancelled : code
  }

  private func finish(_ code: RPCError.Code?, _ error: (any Error)?) {
    // Take the closure under the lock, but call it outside.
    guard let report = self.report.withLock({ $0.take() }) else { return }
    var (code, error) = (code, error)
    if code == .cancelled, record?.isLate ?? false {
      code = .deadlineExceeded
      error = error.map { _ in RPCError(code: .deadlineExceeded, message: CallDeadline.message) }
    }
    let end: @Sendable (RequestRefusal?) -> Void = { [code, error, record] refusal in
      if let refusal { return report(refusal.code, refusal) }
      // A handler may take its client's end for its own, as a health watch does.
      let isUnread = code == nil && record?.isClientGone ?? false
      report(isUnread ? .cancelled : code, error)
    }
    if let record, waitsForStream { record.whenClosed(end) } else { end(record?.refusal) }
  }
}

extension StreamingServerResponse {
  /// Returns this response, changed to report to `end` when it was produced completely or why it failed.
  ///
  /// The handler of a streaming call returns early; the response's producer does the work. `context` is current while
  /// it runs.
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
