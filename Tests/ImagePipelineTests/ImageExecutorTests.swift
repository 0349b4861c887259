import Foundation
import Synchronization
import TestSupport
import Testing
import WorkThreads

@Suite("Image executor")
struct ImageExecutorTests {
  /// Records the threads that jobs ran on.
  private final class Witness: Sendable {
    struct Seen {
      var threads: Set<ObjectIdentifier> = []
      var runningCount = 0
      var maxRunningCount = 0
      var values: [Int] = []
    }
    let seen = Mutex(Seen())

    func note(_ value: Int) {
      seen.withLock {
        $0.threads.insert(ObjectIdentifier(Thread.current))
        $0.values.append(value)
      }
    }

    /// Blocks the thread until `count` jobs run at once, or until a time limit.
    func meet(_ count: Int) {
      let deadline = ContinuousClock.now + .seconds(20)
      seen.withLock {
        $0.threads.insert(ObjectIdentifier(Thread.current))
        $0.runningCount += 1
        $0.maxRunningCount = max($0.maxRunningCount, $0.runningCount)
      }
      while seen.withLock({ $0.maxRunningCount }) < count, ContinuousClock.now < deadline {
        Thread.sleep(forTimeInterval: 0.001)
      }
      // Longer than another thread, if there were one, takes to start.
      Thread.sleep(forTimeInterval: 0.005)
      seen.withLock { $0.runningCount -= 1 }
    }
  }

  @Test("runs as many jobs at once as it has threads, and no more", arguments: [1, 3])
  func concurrency(threadCount: Int) async {
    let executor = ImageExecutor(threadCount: threadCount)
    let witness = Witness()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<4 * threadCount { group.addTask(executorPreference: executor) { witness.meet(threadCount) } }
    }
    let seen = witness.seen.withLock { $0 }
    #expect(seen.maxRunningCount == threadCount)
    #expect(seen.threads.count == threadCount)
  }

  /// Blocks a thread until a number is reached.
  private final class Gate: Sendable {
    private let number = Mutex(0)

    func open(_ number: Int) { self.number.withLock { $0 = number } }

    func wait(_ number: Int) {
      while self.number.withLock({ $0 }) < number { Thread.sleep(forTimeInterval: 0.001) }
    }
  }

  @Test("reports each piece of stuck work, and no completed work")
  func stuckWork() async throws {
    let executor = ImageExecutor(threadCount: 2)
    let gate = Gate()
    #expect(executor.stuckWork(longerThan: .zero).isEmpty)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask(executorPreference: executor) {
        for next in 1...2 {
          WorkThread.begin("piece \(next)")
          gate.wait(next)
        }
      }
      defer { gate.open(2) }
      try await waitUntil("a thread is stuck") { !executor.stuckWork(longerThan: .milliseconds(20)).isEmpty }
      let first = try #require(executor.stuckWork(longerThan: .zero).first)
      #expect(first.subject == "piece 1" && first.duration >= .milliseconds(20))
      #expect(executor.stuckWork(longerThan: .seconds(3600)).isEmpty)
      gate.open(1)
      try await waitUntil("it is at the next") { executor.stuckWork(longerThan: .zero).first?.subject == "piece 2" }
      #expect(executor.stuckWork(longerThan: .zero).first?.id != first.id)
      gate.open(2)
      try await group.waitForAll()
      try await waitUntil("it has returned") { executor.stuckWork(longerThan: .zero).isEmpty }
    }
  }

  @Test("runs every job in order of arrival, on its own threads")
  func order() async {
    let executor = ImageExecutor(threadCount: 1)
    let (ours, others) = (Witness(), Witness())
    await withTaskGroup(of: Void.self) { group in
      for value in 1...500 { group.addTask(executorPreference: executor) { ours.note(value) } }
      for value in 1...50 { group.addTask { others.note(value) } }
    }
    #expect(ours.seen.withLock { $0.values } == Array(1...500))
    #expect(ours.seen.withLock { $0.threads }.count == 1)
    #expect(ours.seen.withLock { $0.threads }.isDisjoint(with: others.seen.withLock { $0.threads }))
  }
}
