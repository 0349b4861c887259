import Foundation
import ImagePipeline
import Synchronization
import TestSupport
import Testing
import WorkThreads

@testable import Admission

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
    try await queue.enter(ImageCaller(connection: connection), cost: cost, cancellation: Cancellation()).lane
  }

  private final class Gate: Sendable {
    private let isOpen = Mutex(false)

    func open() { isOpen.withLock { $0 = true } }
    func wait() { while !isOpen.withLock({ $0 }) { Thread.sleep(forTimeInterval: 0.001) } }
  }

  private final class Order: Sendable {
    let names = Mutex<[String]>([])
  }

  @Test("a small image that waits may begin when an inspection leaves the express thread")
  func inspection() async throws {
    let (gate, inspection) = (Gate(), Gate())
    Task(executorPreference: executor) { gate.wait() }
    Task(executorPreference: express) { inspection.wait() }
    defer { gate.open() }
    try await waitUntil("the threads are busy") { executor.idleThreadCount == 0 && express.idleThreadCount == 0 }
    let cost = ImageCost(.milliseconds(1), isKnown: true)
    #expect(try await enter("a", cost) == .main)
    let waiting = Task { try await enter("b", cost) }
    try await waitUntil("it waits") { queue.waitingCount == 2 }
    inspection.open()
    queue.offerExpress()
    #expect(try await waiting.value == .express)
  }

  @Test("only images that were charged to their caller's share correct it")
  func shares() async throws {
    let gate = Gate()
    Task(executorPreference: executor) { gate.wait() }
    defer { gate.open() }
    try await waitUntil("the thread is busy") { executor.idleThreadCount == 0 }
    #expect(try await enter("first", ImageCost(.milliseconds(10))) == .main)
    let caller = ImageCaller(connection: "a")
    let place = try await queue.enter(
      caller, cost: ImageCost(.milliseconds(1), isKnown: true), cancellation: Cancellation())
    #expect(place.lane == .express && place.charged == nil)
    queue.begin(.express)
    let order = Order()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (count, name) in ["a", "a", "b", "b"].enumerated() {
        group.addTask {
          let place = try await queue.enter(
            ImageCaller(connection: name), cost: ImageCost(.milliseconds(10)), cancellation: Cancellation())
          #expect(place.charged == .milliseconds(10))
          order.names.withLock { $0.append(name) }
        }
        try await waitUntil("it waits") { queue.waitingCount == count + 2 }
      }
      queue.end(place, caller, used: .seconds(1))
      for count in 1...2 {
        queue.begin()
        try await waitUntil("the next begins") { order.names.withLock { $0.count } == count }
      }
      #expect(order.names.withLock { $0 } == ["a", "b"])
      // That of the first took longer than it was charged.
      queue.end(ThreadQueue.Place(lane: .main, charged: .milliseconds(10)), caller, used: .milliseconds(50))
      for count in 3...4 {
        queue.begin()
        try await waitUntil("the next begins") { order.names.withLock { $0.count } == count }
      }
      try await group.waitForAll()
    }
    #expect(order.names.withLock { $0 } == ["a", "b", "b", "a"])
  }
}
