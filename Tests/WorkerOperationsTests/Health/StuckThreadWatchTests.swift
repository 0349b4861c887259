import Foundation
import Logging
import Synchronization
import TestSupport
import Testing
import WorkThreads
import WorkerOperations
import WorkerTelemetry

@Suite("Stuck thread watch", .timeLimit(.minutes(15)))
struct StuckThreadWatchTests {
  /// Blocks a thread until it is opened.
  private final class Gate: Sendable {
    private let isOpen = Mutex(false)

    func open() { isOpen.withLock { $0 = true } }

    func wait() {
      while !isOpen.withLock({ $0 }) { Thread.sleep(forTimeInterval: 0.001) }
    }
  }

  @Test("health fails while an image thread is stuck, which is logged once, and recovers when it returns")
  func stuck() async throws {
    // Each executor has threads of its own.
    let (executor, other) = (ImageExecutor(threadCount: 2), ImageExecutor(threadCount: 1))
    let health = HealthState(services: [])
    let lines = Mutex<[String]>([])
    let logger = Logger(label: "test") { label in
      WorkerLogHandler(label: label, format: .json, write: { line in lines.withLock { $0.append(line) } })
    }
    let watch = StuckThreadWatch(
      executors: [other, executor], limit: .milliseconds(40), health: health, logger: logger)
    health.set(.serving)
    let gate = Gate()
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await watch.run() }
      group.addTask(executorPreference: executor) {
        WorkThread.begin("avif")
        gate.wait()
      }
      await #expect(throws: Never.self) {
        try await waitUntil("it does not serve") { health.status == .notServing }
        // After several checks there is still only one log line.
        try await Task.sleep(for: .milliseconds(100))
      }
      #expect(health.status == .notServing)
      gate.open()
      await #expect(throws: Never.self) { try await waitUntil("it serves") { health.status == .serving } }
      group.cancelAll()
    }
    // On a busy machine the thread may also count as stuck before it begins its work.
    let errors = lines.withLock { $0 }.filter { $0.contains("\"error\"") && $0.contains("avif") }
    #expect(errors.count == 1, "\(errors)")
  }

  @Test("a worker that shuts down does not serve again when a thread returns")
  func draining() {
    let health = HealthState(services: [])
    health.set(.serving)
    health.setStuck(true)
    health.set(.notServing)
    health.setStuck(false)
    #expect(health.status == .notServing)
  }
}
