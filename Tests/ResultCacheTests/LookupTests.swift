import Logging
import Synchronization
import Testing

@testable import ResultCache

@Suite("Cache leadership", .timeLimit(.minutes(15)))
struct LookupTests {
  private struct Broken: Error, Equatable {}

  private static func cache() throws -> ResultCache {
    try ResultCache(limits: CacheLimits(), logger: Log().logger)
  }

  private static func name(_ outcome: ResultCache.Lookup) -> String {
    switch outcome {
    case .hit: "hit"
    case .lead: "lead"
    case .bypass: "bypass"
    }
  }

  private static func collector(_ cache: ResultCache) async throws -> ResultCollector {
    guard case .lead(let collector) = try await cache.lookUp(.of("a"), onWait: { _ in }) else { throw Broken() }
    return collector
  }

  /// Starts callers that wait for the result; returns when all of them wait.
  private static func waiters(
    _ count: Int, _ cache: ResultCache, _ body: @escaping @Sendable (ResultCache.Lookup) async throws -> Void = { _ in }
  ) async -> [Task<String, any Error>] {
    let waiting = AsyncStream<Void>.makeStream()
    let tasks = (0..<count).map { _ in
      Task {
        let outcome = try await cache.lookUp(.of("a")) { _ in waiting.continuation.yield() }
        try await body(outcome)
        return name(outcome)
      }
    }
    var iterator = waiting.stream.makeAsyncIterator()
    for _ in 0..<count { await iterator.next() }
    return tasks
  }

  private static func finish(_ collector: ResultCollector) {
    collector.append([1, 2, 3])
    collector.seal(metadata: [4])
    collector.keep(as: .of("a"))
  }

  @Test("one caller produces the result, the others receive it")
  func shared() async throws {
    let cache = try Self.cache()
    let collector = try await Self.collector(cache)
    let tasks = await Self.waiters(8, cache)
    Self.finish(collector)
    for task in tasks { #expect(try await task.value == "hit") }
  }

  @Test("when the leader gives up, exactly one other caller takes over for all the rest")
  func handedOver() async throws {
    let cache = try Self.cache()
    let collector = try await Self.collector(cache)
    let tasks = await Self.waiters(8, cache) { outcome in
      if case .lead(let collector) = outcome { Self.finish(collector) }
    }
    collector.giveUp()
    var names: [String] = []
    for task in tasks { names.append(try await task.value) }
    #expect(names.sorted() == [String](repeating: "hit", count: 7) + ["lead"])
  }

  @Test("an abandoned collector gives up")
  func forgotten() async throws {
    let cache = try Self.cache()
    var collector: ResultCollector? = try await Self.collector(cache)
    let tasks = await Self.waiters(1, cache)
    #expect(collector != nil)
    collector = nil
    #expect(try await tasks[0].value == "lead")
  }

  @Test("an error of the image is shared with all waiters, and the next caller tries again")
  func failed() async throws {
    let cache = try Self.cache()
    let collector = try await Self.collector(cache)
    let tasks = await Self.waiters(3, cache)
    collector.fail(Broken())
    for task in tasks { await #expect(throws: Broken.self) { try await task.value } }
    _ = try await Self.collector(cache)
  }

  @Test("a result too large for the cache is produced by every caller")
  func tooLarge() async throws {
    let cache = try Self.cache()
    let collector = try await Self.collector(cache)
    let tasks = await Self.waiters(3, cache)
    for _ in 0...CacheLimits.maxResultByteCount / (1 << 20) { collector.append([UInt8](repeating: 0, count: 1 << 20)) }
    for task in tasks { #expect(try await task.value == "bypass") }
    #expect(cache.memoryByteCount == 0)
  }

  @Test("a wait can be cancelled without affecting the others")
  func stopped() async throws {
    let cache = try Self.cache()
    let collector = try await Self.collector(cache)
    let others = await Self.waiters(2, cache)
    await #expect(throws: CacheError.stopped) { try await cache.lookUp(.of("a")) { stop in stop() } }
    Self.finish(collector)
    for task in others { #expect(try await task.value == "hit") }
  }

  @Test("nobody waits for a leader whose client reads nothing")
  func stalled() async throws {
    let cache = try Self.cache()
    let collector = try await Self.collector(cache)
    let tasks = await Self.waiters(2, cache)
    collector.noteSending(true)
    for task in tasks { #expect(try await task.value == "bypass") }
    collector.noteSending(false)
  }

  @Test("waiters stay with a leader whose client reads slowly")
  func slow() async throws {
    let cache = try Self.cache()
    let collector = try await Self.collector(cache)
    let tasks = await Self.waiters(2, cache)
    // Longer than anybody waits for a single message.
    for _ in 0..<16 {
      collector.noteSending(true)
      try await Task.sleep(for: .milliseconds(150))
      collector.noteSending(false)
    }
    Self.finish(collector)
    for task in tasks { #expect(try await task.value == "hit") }
  }

  @Test("each sent message has its own number, and a new leader has sent none")
  func sending() {
    let key = CacheKey.of("a")
    var state = CacheState(limit: 1000, keepsEntries: true)
    state.noteSending(key, isSending: true)
    #expect(state.flights[key] == nil)
    guard case .lead = state.enter(key) else {
      Issue.record("nobody makes it")
      return
    }
    var numbers: Set<UInt64?> = []
    for _ in 0..<3 {
      state.noteSending(key, isSending: true)
      numbers.insert(state.flights[key]?.sending)
      state.noteSending(key, isSending: false)
      #expect(state.flights[key] != nil && state.flights[key]?.sending == nil)
    }
    #expect(numbers.count == 3)
    state.noteSending(key, isSending: true)
    guard case .wait(let waiter) = state.enter(key) else {
      Issue.record("nobody waits")
      return
    }
    #expect(state.promote(of: key) === waiter && state.flights[key] != nil && state.flights[key]?.sending == nil)
    #expect(state.promote(of: key) == nil && state.flights[key] == nil)
  }
}
