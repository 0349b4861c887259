package import GRPCCore
internal import NIOCore
internal import NIOPosix
internal import ServiceContextModule

/// Runs tasks on event loops, where the transport does its own work.
///
/// When a call's tasks run there, receiving and sending wake no other thread. Waking a thread costs more than a
/// handler's work between receiving and sending. Nothing slow or blocking may run here.
package final class EventLoopExecutor: TaskExecutor {
  /// Runs each job on the current event loop, or on any event loop if the job comes from another thread.
  package static let shared = EventLoopExecutor(loop: nil)

  private static let pinned = Dictionary(
    uniqueKeysWithValues: MultiThreadedEventLoopGroup.singleton.makeIterator().map { loop in
      (ObjectIdentifier(loop), EventLoopExecutor(loop: loop))
    })

  private let loop: (any EventLoop)?

  private init(loop: (any EventLoop)?) { self.loop = loop }

  /// The executor pinned to the event loop of the calling thread; `nil` on other threads.
  static var current: EventLoopExecutor? {
    MultiThreadedEventLoopGroup.currentEventLoop.flatMap { pinned[ObjectIdentifier($0)] }
  }

  /// Schedules a job on the executor's event loop.
  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let loop = self.loop ?? MultiThreadedEventLoopGroup.currentEventLoop ?? MultiThreadedEventLoopGroup.singleton.any()
    loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

/// Continues a call as the listener has begun it: on the event loop of its connection, and with its record in its context.
///
/// Otherwise, a task that runs on another executor could return on any event loop. Install it first, and serve with
/// `EventLoopExecutor.shared` as the preferred executor.
package struct ListenerInterceptor: ServerInterceptor {
  private let calls: CallLog

  /// - Parameter calls: The log of the listener's calls.
  package init(_ calls: CallLog) { self.calls = calls }

  package func intercept<Input: Sendable, Output: Sendable>(
    request: StreamingServerRequest<Input>,
    context: ServerContext,
    next: @Sendable (StreamingServerRequest<Input>, ServerContext) async throws -> StreamingServerResponse<Output>
  ) async throws -> StreamingServerResponse<Output> {
    var current = ServiceContext.current ?? .topLevel
    current.call = try calls.records.record(request.metadata)
    return try await ServiceContext.$current.withValue(current) {
      guard let executor = EventLoopExecutor.current else { return try await next(request, context) }
      var response = try await withTaskExecutorPreference(executor) { try await next(request, context) }
      guard case .success(var contents) = response.accepted else { return response }
      contents.producer = { [producer = contents.producer] writer in
        try await withTaskExecutorPreference(executor) { try await producer(writer) }
      }
      response.accepted = .success(contents)
      return response
    }
  }
}
