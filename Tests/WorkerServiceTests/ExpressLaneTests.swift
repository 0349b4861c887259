import Foundation
import ImagePipeline
import Synchronization
import TestSupport
import Testing
import WorkThreads

@testable import WorkerService

@Suite("Express lane", .timeLimit(.minutes(15)))
struct ExpressLaneTests {
  private let executor = ImageExecutor(threadCount: 1)
  private let express = ImageExecutor(threadCount: 1)
  private let queue: ThreadQueue

  init() {
    queue = ThreadQueue(
      executor: executor, express: express, memory: MemoryBudget(limit: 1 << 20, maxWaiting: 8), maxWait: .seconds(30))
  }

  private func enter(_ connection: String, _ cost: ImageCost) async throws -> ThreadQueue.Lane {
    try await queue.enter(ImageCaller(connection: connection), cost: cost, cancellation: Cancellation())
  }

  private final class Gate: Sendable {
    private let isOpen = Mutex(false)

    func open() { isOpen.withLock { $0 = true } }
    func wait() { while !isOpen.withLock({ $0 }) { Thread.sleep(forTimeInterval: 0.001) } }
  }

  @Test("a small image that waits may begin when an inspection leaves the express thread")
  func inspection() async throws {
    let (gate, inspection) = (Gate(), Gate())
    Task(executorPreference: executor) { gate.wait() }
    Task(executorPreference: express) { inspection.wait() }
    defer { gate.open() }
    try await waitUntil("the threads are busy") { executor.idleThreadCount == 0 && express.idleThreadCount == 0 }
    let cost = ImageCost(.milliseconds(1), isLearned: true)
    #expect(try await enter("a", cost) == .main)
    let waiting = Task { try await enter("b", cost) }
    try await waitUntil("it waits") { queue.waitingCount == 2 }
    inspection.open()
    queue.offerExpress()
    #expect(try await waiting.value == .express)
  }

  @Test("an image waits for the main threads if its kind has become expensive")
  func expensive() async throws {
    let gate = Gate()
    Task(executorPreference: executor) { gate.wait() }
    defer { gate.open() }
    try await waitUntil("the thread is busy") { executor.idleThreadCount == 0 }
    let image = Data(Fixture.bytes("photo-420.jpg"))
    let renditions = [Rendition(index: nil, id: "", configuration: ProcessingConfiguration())]
    queue.costs.learn(.milliseconds(1), for: queue.costs.estimate(of: image, renditions))
    let cost = queue.costs.estimate(of: image, renditions)
    #expect(try await enter("first", ImageCost(.milliseconds(10))) == .main)
    #expect(try await enter("a", cost) == .express)
    let waiting = Task { try await enter("b", cost) }
    try await waitUntil("it waits") { queue.waitingCount == 3 }
    queue.costs.learn(.seconds(2), for: cost)
    queue.begin(.express)
    queue.end(.express, ImageCaller(connection: "a"), cost: cost, worked: .seconds(2))
    #expect(queue.waitingCount == 2)
    queue.begin()
    #expect(try await waiting.value == .main)
  }
}
