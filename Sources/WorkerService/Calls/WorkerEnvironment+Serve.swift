internal import GRPCCore
internal import ImagePipeline
internal import Synchronization

extension WorkerEnvironment {
  /// Runs the work of one call.
  ///
  /// Refuses it while the worker drains, cancels it with its client, and converts its errors to their wire form.
  ///
  /// - `oneImage`: whether an error of the call is that of an image and is recorded in its metrics.
  func serve<Result>(
    oneImage: Bool = false, _ body: (Cancellation) async throws -> Result
  ) async throws -> Result {
    let isCancelled = Mutex(false)
    do {
      return try await drain.withWork { cancellation in
        return try await withRPCCancellationHandler {
          try await body(cancellation)
        } onCancelRPC: {
          isCancelled.withLock { $0 = true }
          cancellation.cancel()
        }
      }
    } catch {
      let isCancelled = isCancelled.withLock { $0 }
      if oneImage { metrics.failed(error, isCancelled: isCancelled) }
      // What the transport throws when the client is gone is not a defect.
      let cause = isCancelled && !(error is PipelineError) ? PipelineError.cancelled : error
      throw WireError.status(any: drain.reason(cause))
    }
  }
}
