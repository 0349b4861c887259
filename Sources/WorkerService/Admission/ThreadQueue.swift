internal import ImagePipeline
internal import Synchronization
internal import WorkThreads

/// Counts the images that wait for an image thread, and limits their number.
///
/// The limit includes the images that wait for memory.
package final class ThreadQueue: Sendable {
  private let executor: ImageExecutor
  private let memory: MemoryBudget
  private let waiting = Mutex(0)

  init(executor: ImageExecutor, memory: MemoryBudget) {
    self.executor = executor
    self.memory = memory
  }

  /// The number of images that wait for a thread.
  package var waitingCount: Int { waiting.withLock { $0 } }

  /// Counts an image as waiting, until `leave` is called when a thread starts to process it.
  /// - Throws: `overloaded` if no thread is idle and too many images wait.
  func enter() throws(PipelineError) {
    // An image for which a thread is idle only waits for that thread to wake up.
    let places = memory.maxWaiting - memory.waitingCount + executor.idleThreadCount
    let isRefused = waiting.withLock { waiting in
      if waiting >= places { return true }
      waiting += 1
      return false
    }
    guard isRefused else { return }
    throw PipelineError(.overloaded, "\(memory.maxWaiting) images are waiting for a thread or memory; try again later")
  }

  func leave() { waiting.withLock { $0 -= 1 } }
}
