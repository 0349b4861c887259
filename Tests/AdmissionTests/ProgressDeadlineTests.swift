import Synchronization
import TestSupport
import Testing

@testable import Admission

@Suite("Progress deadline", .timeLimit(.minutes(15)))
struct ProgressDeadlineTests {
  private static let limit = Duration.milliseconds(20)

  private func observing(_ ids: String...) -> ProgressDeadline {
    let deadline = ProgressDeadline(limit: Self.limit)
    for id in ids { deadline.observe(id) }
    return deadline
  }

  @Test("a wait expires once, and only if nothing arrives")
  func expiry() async throws {
    let deadline = observing("nothing comes", "comes", "came", "works")
    deadline.resume()
    for id in ["nothing comes", "comes", "came"] { deadline.beginWait(of: id) }
    deadline.supply("comes", byteCount: 1)
    deadline.supply("came", byteCount: 1)
    deadline.endWait(of: "came", tookSupply: true)
    var expired: [String] = []
    try await waitUntil("a wait has expired") {
      expired += deadline.takeExpired()
      return !expired.isEmpty
    }
    try await Task.sleep(for: Self.limit * 3)
    #expect(expired + deadline.takeExpired() == ["nothing comes"])
    #expect(deadline.hasExpired("nothing comes") && !deadline.hasExpired("comes"))
    // The next wait has its own deadline.
    deadline.beginWait(of: "came")
    try await waitUntil("it has expired") { deadline.takeExpired() == ["came"] }
    deadline.forget("came")
    #expect(!deadline.hasExpired("came"))
  }

  @Test("with a minimum rate, waits add up unless enough bytes make up for them")
  func rate() async throws {
    let deadline = ProgressDeadline(limit: .milliseconds(50), minBytesPerSecond: 1_000_000)
    for id in ["trickles", "flows"] { deadline.observe(id) }
    deadline.resume()
    for _ in 0..<15 {
      for id in ["trickles", "flows"] { deadline.beginWait(of: id) }
      try await Task.sleep(for: .milliseconds(10))
      for (id, byteCount) in [("trickles", 1), ("flows", 1 << 30)] {
        deadline.supply(id, byteCount: byteCount)
        deadline.endWait(of: id, tookSupply: true)
      }
    }
    deadline.beginWait(of: "trickles")
    deadline.beginWait(of: "flows")
    #expect(deadline.takeExpired() == ["trickles"])
  }

  @Test("no time passes while it is paused")
  func pause() async throws {
    let deadline = observing("a")
    deadline.beginWait(of: "a")
    try await Task.sleep(for: Self.limit * 5)
    #expect(deadline.takeExpired().isEmpty)
    deadline.resume()
    try await waitUntil("it has expired") { !deadline.takeExpired().isEmpty }
    deadline.pause()
    deadline.endWait(of: "a", tookSupply: false)
    deadline.observe("a")
    deadline.beginWait(of: "a")
    try await Task.sleep(for: Self.limit * 5)
    #expect(deadline.takeExpired().isEmpty)
  }

  private final class Expired: Sendable {
    let ids = Mutex<[String]>([])
  }

  @Test("keeps ids apart that are equal as texts")
  func normalization() throws {
    let deadline = ProgressDeadline(limit: .zero)
    deadline.resume()
    for id in ["caf\u{E9}", "cafe\u{301}"] {
      deadline.observe(id)
      deadline.beginWait(of: id)
    }
    deadline.forget("cafe\u{301}")
    #expect(deadline.takeExpired().map { Array($0.utf8) } == [Array("caf\u{E9}".utf8)])
  }

  @Test("calls for each that expires until it is cancelled, and for none without a limit")
  func watch() async throws {
    let expired = Expired()
    for deadline in [observing("a"), ProgressDeadline(limit: nil)] {
      deadline.observe("a")
      deadline.beginWait(of: "a")
      deadline.resume()
      await withTaskGroup(of: Void.self) { group in
        group.addTask { await deadline.watch { id in expired.ids.withLock { $0.append(id) } } }
        while deadline.limit != nil, expired.ids.withLock({ $0.isEmpty }) { await Task.yield() }
        group.cancelAll()
      }
    }
    #expect(expired.ids.withLock { $0 } == ["a"])
  }
}
