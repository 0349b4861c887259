internal import NIOCore
internal import NIOPosix

/// Runs tasks on event loops, where the transport's own work is done.
///
/// With a call's tasks there, what it receives and what it sends needs no other thread to be woken, which costs more than
/// what a handler does between the two. Nothing that takes long or blocks may run here.
package final class EventLoopExecutor: TaskExecutor {
  /// Runs jobs on the loop that they are given on, and on any where they come from elsewhere.
  package static let shared = EventLoopExecutor(loop: nil)

  private static let pinned = Dictionary(
    uniqueKeysWithValues: MultiThreadedEventLoopGroup.singleton.makeIterator().map { loop in
      (ObjectIdentifier(loop), EventLoopExecutor(loop: loop))
    })

  private let loop: (any EventLoop)?

  private init(loop: (any EventLoop)?) { self.loop = loop }

  /// The one that stays on the loop of the calling thread; `nil` on other threads.
  static var current: EventLoopExecutor? {
    MultiThreadedEventLoopGroup.currentEventLoop.flatMap { pinned[ObjectIdentifier($0)] }
  }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let loop = self.loop ?? MultiThreadedEventLoopGroup.currentEventLoop ?? MultiThreadedEventLoopGroup.singleton.any()
    loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
