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
    _ connection: String = "a", cost: Duration = .milliseconds(10), isLearned: Bool = false, deadline: Duration? = nil,
    cancellation: Cancellation = Cancellation()
  ) async throws -> ThreadQueue.Lane {
    let caller = ImageCaller(connection: connection, deadline: deadline.map { .now + $0 })
    return try await queue.enter(caller, cost: ImageCost(cost, isLearned: isLearned), cancellation: cancellation).lane
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

  @Test("a caller whose images fill the queue gives places to others")
  func displacement() async throws {
    try await enter()
    let (begun, refused) = (Log(), Log())
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (index, name) in (Array(repeating: "flood", count: 8) + Array(repeating: "b", count: 4)).enumerated() {
        group.addTask {
          do {
            try await enter(name)
            begun.append(name)
          } catch { refused.append(name) }
        }
        // Eight fill the queue; each further one takes the place of one of them.
        try await waitUntil("it waits") {
          queue.waitingCount == min(9, index + 2) && refused.count("flood") >= index - 7
        }
      }
      let full = try await refusal { try await enter("b") }
      #expect(full.code == .overloaded && full.retryDelay ?? .zero > .zero)
      for count in 1...8 {
        queue.begin()
        try await waitUntil("the next begins") { begun.count("flood") + begun.count("b") == count }
      }
      try await group.waitForAll()
    }
    #expect(begun.count("flood") == 4 && begun.count("b") == 4)
    #expect(refused.count("flood") == 4 && refused.count("b") == 0)
  }

  @Test("a small image does not wait for a large one that has begun")
  func express() async throws {
    let gate = Gate()
    Task(executorPreference: executor) { gate.wait() }
    defer { gate.open() }
    try await waitUntil("the thread is busy") { executor.idleThreadCount == 0 }
    // Guesses do not count, nor do images that are known to be large.
    #expect(try await enter("large", cost: .milliseconds(900), isLearned: true) == .main)
    #expect(try await enter("b", cost: .milliseconds(1), isLearned: true) == .express)
    let lanes = Log()
    try await withThrowingTaskGroup(of: Void.self) { group in
      let costs: [(milliseconds: Int, isLearned: Bool)] = [(1, false), (900, true), (2, true), (2, true)]
      for (index, cost) in costs.enumerated() {
        group.addTask {
          let lane = try await enter("\(index)", cost: .milliseconds(cost.milliseconds), isLearned: cost.isLearned)
          lanes.append(lane == .express ? "express" : "main")
        }
        try await waitUntil("it waits") { queue.waitingCount == index + 3 }
      }
      for count in 1...2 {
        queue.begin(.express)
        queue.end(
          ThreadQueue.Place(lane: .express), ImageCaller(connection: "b"), worked: .milliseconds(1))
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
    func expect(_ connection: String, deadline: Duration? = nil) throws -> ExpectedImage {
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
      for count in 5...9 {
        group.addTask { try await enter(cost: .zero) }
        try await waitUntil("it waits") { queue.waitingCount == count }
      }
      #expect(try await refusal { _ = try expect("a") }.message.contains("8 images"))
      promises.append(try expect("b"))
      for _ in 0..<9 { queue.begin() }
      try await group.waitForAll()
    }
  }

  @Test("refuses calls whose images would be late because of those that others were promised")
  func expectationOfOthers() async throws {
    try await enter()
    func expect(_ connection: String, deadline: Duration? = nil) throws -> ExpectedImage {
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
      // One has begun, two wait and five are expected: the last place, and those of a caller who has more.
      promises.append(try expect("c"))
      promises.append(try expect("a"))
      let full = try await refusal { _ = try expect("b") }
      #expect(full.code == .overloaded && full.message.contains("8 images"))
      promises.append(try expect("c"))
      promises = []
      promises.append(try expect("b", deadline: .seconds(4)))
      for _ in 0..<3 { queue.begin() }
      try await group.waitForAll()
    }
  }

  @Test("callers with almost as many waiting images as another keep their places")
  func similarCallers() {
    let state = ThreadQueue.State(rate: WorkRate(threadCount: 1, expressCount: 1))
    #expect(state.isAhead(0, of: 2) && !state.isAhead(0, of: 1) && !state.isAhead(2, of: 3) && state.isAhead(3, of: 5))
    #expect(!state.isAhead(30, of: 34) && state.isAhead(30, of: 46))
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
