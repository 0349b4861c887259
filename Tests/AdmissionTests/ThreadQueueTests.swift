import Foundation
import ImagePipeline
import Synchronization
import TestSupport
import Testing
import WorkThreads

@testable import Admission

@Suite("ThreadQueue", .timeLimit(.minutes(15)))
struct ThreadQueueTests {
  private let executor: ImageExecutor
  private let queue: ThreadQueue

  init() {
    executor = ImageExecutor(threadCount: 1)
    queue = ThreadQueue(
      executor: executor, express: ImageExecutor(threadCount: 1), memory: MemoryBudget(limit: 1 << 20, maxWaiting: 8),
      maxWait: .seconds(30))
  }

  @discardableResult
  private func enter(
    _ connection: String = "a", cost: Duration = .milliseconds(10), isKnown: Bool = false, deadline: Duration? = nil,
    isPromised: Bool = false, cancellation: Cancellation = Cancellation()
  ) async throws -> ThreadQueue.Lane {
    var caller = ImageCaller(connection: connection, deadline: deadline.map { .now + $0 })
    caller.isPromised = isPromised
    return try await queue.enter(caller, cost: ImageCost(cost, isKnown: isKnown), cancellation: cancellation).lane
  }

  private struct NotRefused: Error {}

  private final class Log: Sendable {
    let names = Mutex<[String]>([])

    func append(_ name: String) { names.withLock { $0.append(name) } }
    func count(_ name: String) -> Int { names.withLock { $0.filter { $0 == name }.count } }
  }

  private final class Gate: Sendable {
    private let isOpen = Mutex(false)

    func open() { isOpen.withLock { $0 = true } }
    func wait() { while !isOpen.withLock({ $0 }) { Thread.sleep(forTimeInterval: 0.001) } }
  }

  private func refusal(_ body: () async throws -> Void) async throws -> PipelineError {
    do { try await body() } catch let error as PipelineError { return error }
    throw NotRefused()
  }

  @Test("lets one image begin for each that has begun, alternating between connections")
  func order() async throws {
    try await enter("first")
    let begun = Log()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (count, name) in ["a", "a", "a", "b"].enumerated() {
        group.addTask {
          try await enter(name)
          begun.names.withLock { $0.append(name) }
        }
        try await waitUntil("it waits") { queue.waitingCount == count + 2 }
      }
      for count in 1...4 {
        #expect(begun.names.withLock { $0.count } == count - 1)
        queue.begin()
        try await waitUntil("the next begins") { begun.names.withLock { $0.count } == count }
      }
      try await group.waitForAll()
    }
    #expect(begun.names.withLock { $0 } == ["a", "b", "a", "a"])
    queue.begin()
    #expect(queue.waitingCount == 0)
  }

  @Test("refuses an image that would be late, at once, with the time after which to try again")
  func late() async throws {
    try await enter()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await enter(cost: .seconds(10)) }
      try await waitUntil("it waits") { queue.waitingCount == 2 }
      let error = try await refusal { try await enter(cost: .seconds(1), deadline: .seconds(5)) }
      #expect(error.code == .overloaded && error.retryDelay == .seconds(11))
      #expect(error.message.contains("done in about 11.0 s"))
      // Another connection has a share of its own.
      group.addTask { try await enter("b", cost: .seconds(1), deadline: .seconds(60)) }
      try await waitUntil("it waits") { queue.waitingCount == 3 }
      for _ in 0..<3 { queue.begin() }
      try await group.waitForAll()
    }
  }

  @Test("refuses an image whose deadline has come closer than its cost when it may begin")
  func expired() async throws {
    try await enter()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        let error = try await refusal { try await enter(cost: .milliseconds(100), deadline: .milliseconds(200)) }
        #expect(error.code == .overloaded && error.message.contains("deadline"))
      }
      try await waitUntil("it waits") { queue.waitingCount == 2 }
      try await Task.sleep(for: .milliseconds(150))
      queue.begin()
      try await group.waitForAll()
    }
    #expect(queue.waitingCount == 0)
  }

  @Test("refuses images above the limits on their number and on the wait")
  func limits() async throws {
    try await enter()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await enter(cost: .seconds(25)) }
      try await waitUntil("it waits") { queue.waitingCount == 2 }
      let long = try await refusal { try await enter(cost: .seconds(10)) }
      #expect(long.code == .overloaded && long.message.contains("max_queue_seconds") && long.retryDelay == .seconds(5))
      for count in 3...9 {
        group.addTask { try await enter("\(count)", cost: .zero) }
        try await waitUntil("it waits") { queue.waitingCount == count }
      }
      let full = try await refusal { try await enter("b", cost: .milliseconds(20)) }
      #expect(full.code == .overloaded && full.message.contains("8 images"))
      // The waiting 25 s count only as much as the image's own share of the time.
      #expect(full.retryDelay == .milliseconds(40))
      for _ in 0..<9 { queue.begin() }
      try await group.waitForAll()
    }
  }

  @Test("leaves a quarter of the queue to callers other than the one that floods it")
  func places() async throws {
    try await enter()
    try await withThrowingTaskGroup(of: Void.self) { group in
      // Of nine places one has begun; the flood gets three times as many as it leaves.
      for (index, name) in ["flood", "flood", "flood", "flood", "flood", "flood", "b", "c"].enumerated() {
        group.addTask { try await enter(name) }
        try await waitUntil("it waits") { queue.waitingCount == index + 2 }
        guard name != "flood" || index == 5 else { continue }
        let full = try await refusal { try await enter("flood") }
        #expect(full.code == .overloaded && full.message.contains("8 images") && full.retryDelay ?? .zero > .zero)
      }
      #expect(try await refusal { try await enter("d") }.message.contains("8 images"))
      // Its call was promised a place.
      group.addTask { try await enter("flood", isPromised: true) }
      try await waitUntil("it waits") { queue.waitingCount == 10 }
      for _ in 0..<10 { queue.begin() }
      try await group.waitForAll()
    }
  }

  @Test("a small image does not wait for a large one that has begun")
  func express() async throws {
    let gate = Gate()
    Task(executorPreference: executor) { gate.wait() }
    defer { gate.open() }
    try await waitUntil("the thread is busy") { executor.idleThreadCount == 0 }
    // Guesses do not count, nor do images that are known to be large.
    #expect(try await enter("large", cost: .milliseconds(900), isKnown: true) == .main)
    #expect(try await enter("b", cost: .milliseconds(1), isKnown: true) == .express)
    let lanes = Log()
    try await withThrowingTaskGroup(of: Void.self) { group in
      let costs: [(milliseconds: Int, isKnown: Bool)] = [(1, false), (900, true), (2, true), (2, true)]
      for (index, cost) in costs.enumerated() {
        group.addTask {
          let lane = try await enter("\(index)", cost: .milliseconds(cost.milliseconds), isKnown: cost.isKnown)
          lanes.append(lane == .express ? "express" : "main")
        }
        try await waitUntil("it waits") { queue.waitingCount == index + 3 }
      }
      for count in 1...2 {
        queue.begin(.express)
        queue.end(
          ThreadQueue.Place(lane: .express), ImageCaller(connection: "b"), used: .milliseconds(1))
        try await waitUntil("the next begins") { lanes.count("express") == count }
      }
      #expect(lanes.count("main") == 0)
      for _ in 0..<3 { queue.begin() }
      try await group.waitForAll()
    }
    #expect(lanes.count("main") == 2)
  }

  @Test("refuses calls whose images would be refused, before they are received")
  func expectation() async throws {
    try await enter()
    func expect(_ connection: String, deadline: Duration? = nil) throws -> Claim {
      try queue.expect(ImageCaller(connection: connection, deadline: deadline.map { .now + $0 }))
    }
    var promises = [try expect("a", deadline: .milliseconds(1))]  // nothing waits
    try await withThrowingTaskGroup(of: Void.self) { group in
      for count in 2...4 {
        group.addTask { try await enter(cost: .seconds(1)) }
        try await waitUntil("it waits") { queue.waitingCount == count }
      }
      // Three wait, one is expected, and this would be the fifth.
      let late = try await refusal { _ = try expect("a", deadline: .seconds(6)) }
      #expect(late.code == .overloaded && late.message.contains("5.0 s") && late.retryDelay == .seconds(5))
      promises.append(try expect("a", deadline: .seconds(7)))
      #expect(try await refusal { _ = try expect("a", deadline: .seconds(7)) }.message.contains("6.0 s"))
      promises = []
      promises.append(try expect("a", deadline: .seconds(6)))
      // Nothing is known about the images of another caller.
      promises.append(try expect("b", deadline: .milliseconds(1)))
      // Two are expected; of nine places, one more is left, for callers with fewer than three.
      for count in 5...6 {
        group.addTask { try await enter("\(count)", cost: .zero) }
        try await waitUntil("it waits") { queue.waitingCount == count }
      }
      #expect(try await refusal { _ = try expect("a") }.message.contains("8 images"))
      promises.append(try expect("b"))
      #expect(try await refusal { _ = try expect("b") }.message.contains("8 images"))
      for _ in 0..<6 { queue.begin() }
      try await group.waitForAll()
    }
  }

  @Test("refuses calls whose images would be late because of those that others were promised")
  func expectationOfOthers() async throws {
    try await enter()
    func expect(_ connection: String, deadline: Duration? = nil) throws -> Claim {
      try queue.expect(ImageCaller(connection: connection, deadline: deadline.map { .now + $0 }))
    }
    var promises = try ["a", "b"].map { try expect($0) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (count, name) in ["a", "b"].enumerated() {
        group.addTask { try await enter(name, cost: .seconds(1)) }
        try await waitUntil("it waits") { queue.waitingCount == count + 2 }
      }
      // One waits and one is expected of each.
      #expect(try await refusal { _ = try expect("a", deadline: .seconds(5)) }.message.contains("5.0 s"))
      // Only as many of another caller as the queue lets go first.
      promises += try (0..<3).map { _ in try expect("b") }
      #expect(try await refusal { _ = try expect("a", deadline: .seconds(5)) }.retryDelay == .seconds(6))
      // One has begun, two wait and five are expected: the last place is for callers with fewer than three.
      let full = try await refusal { _ = try expect("b") }
      #expect(full.code == .overloaded && full.message.contains("8 images"))
      promises.append(try expect("c"))
      #expect(try await refusal { _ = try expect("c") }.message.contains("8 images"))
      promises = []
      promises.append(try expect("b", deadline: .seconds(4)))
      for _ in 0..<3 { queue.begin() }
      try await group.waitForAll()
    }
  }

  @Test("keeps its promises unless the deadline itself would pass")
  func promises() async throws {
    try await enter()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await enter(cost: .seconds(29)) }
      try await waitUntil("it waits") { queue.waitingCount == 2 }
      // Too near to the deadline, and above the maximum wait, for a promise; not for one that was made before.
      for (cost, isRefused) in [(160, false), (200, true)] {
        let deadline = Duration.seconds(210)
        let late = try await refusal { try await enter(cost: .seconds(cost), deadline: deadline) }
        #expect(late.code == .overloaded)
        group.addTask {
          do { try await enter(cost: .seconds(cost), deadline: deadline, isPromised: true) } catch {
            let error = try #require(error as? PipelineError)
            #expect(isRefused && error.message.contains("done in about 229.0 s"))
          }
        }
        if !isRefused { try await waitUntil("it waits") { queue.waitingCount == 3 } }
      }
      for _ in 0..<3 { queue.begin() }
      try await group.waitForAll()
    }
  }

  @Test("an image whose call is cancelled leaves the queue")
  func cancellation() async throws {
    try await enter()
    let cancellation = Cancellation()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        let error = try await refusal { try await enter(cancellation: cancellation) }
        #expect(error.code == .cancelled)
      }
      try await waitUntil("it waits") { queue.waitingCount == 2 }
      cancellation.cancel()
      try await group.waitForAll()
    }
    #expect(queue.waitingCount == 1)
    #expect(try await refusal { try await enter(cancellation: cancellation) }.code == .cancelled)
  }
}
