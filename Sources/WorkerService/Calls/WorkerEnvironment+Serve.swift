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
      if oneImage { metrics.failed(error, isCancelled: isCancelled.withLock { $0 }) }
      throw WireError.status(any: drain.reason(error))
    }
  }
}
