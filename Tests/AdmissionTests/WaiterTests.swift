import Admission
import ImagePipeline
import Synchronization
import TestSupport
import Testing
import WorkThreads

@Suite("Waiter", .timeLimit(.minutes(15)))
struct WaiterTests {
  /// A list of waiters, as those who let others wait keep it.
  private final class List: Sendable {
    let waiters = Mutex<[Waiter<Int>]>([])

    func append() -> Waiter<Int> {
      let waiter = Waiter<Int>()
      waiters.withLock { $0.append(waiter) }
      return waiter
    }

    func remove(_ waiter: Waiter<Int>) -> Bool {
      waiters.withLock { $0.removeFirst { $0 === waiter } } != nil
    }

    func endFirst(_ outcome: Int) { waiters.withLock { $0.removeFirst { _ in true } }?.end(outcome) }
  }

  private let list = List()
  private let cancellation = Cancellation()

  private func outcome(_ waiter: Waiter<Int>) async -> Int {
    await waiter.outcome(or: -1, when: cancellation) { [list] in list.remove(waiter) }
  }

  @Test("has the outcome that it was given before anybody asked for it, and only the first")
  func before() async {
    let waiter = list.append()
    list.endFirst(1)
    waiter.end(2)
    #expect(await outcome(waiter) == 1)
  }

  @Test("suspends until it is given its outcome, and then has only the first")
  func after() async throws {
    let waiter = list.append()
    async let first = outcome(waiter)
    try await Task.sleep(for: .milliseconds(20))
    list.endFirst(1)
    waiter.end(2)
    #expect(await first == 1)
  }

  @Test("ends when it is cancelled, before or while it is suspended, and leaves its list")
  func cancelled() async throws {
    let waiter = list.append()
    async let first = outcome(waiter)
    try await Task.sleep(for: .milliseconds(20))
    cancellation.cancel()
    #expect(await first == -1)
    #expect(await outcome(list.append()) == -1)
    #expect(list.waiters.withLock { $0.isEmpty })
  }

  @Test("keeps the outcome of whoever took it out of its list before it was cancelled")
  func taken() async {
    let waiter = list.append()
    #expect(list.remove(waiter))
    cancellation.cancel()
    async let outcome = outcome(waiter)
    waiter.end(1)
    #expect(await outcome == 1)
  }

  @Test("loses no outcome when it is given one, suspended and cancelled at the same time")
  func races() async {
    for _ in 0..<2000 {
      let (list, cancellation) = (List(), Cancellation())
      let waiter = list.append()
      async let outcome = waiter.outcome(or: -1, when: cancellation) { list.remove(waiter) }
      async let ended: Void = list.endFirst(1)
      async let cancelled: Void = cancellation.cancel()
      _ = await (ended, cancelled)
      #expect([1, -1].contains(await outcome))
      #expect(list.waiters.withLock { $0.isEmpty })
    }
  }

  @Test("removes its handler from the cancellation")
  func handler() async {
    weak var kept: List?
    do {
      let list = List()
      kept = list
      let waiter = list.append()
      list.endFirst(1)
      #expect(await waiter.outcome(or: -1, when: cancellation) { list.remove(waiter) } == 1)
    }
    #expect(kept == nil)
  }
}
