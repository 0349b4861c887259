import Admission
import CoreMetrics
import Foundation
import ImagePipeline
import Synchronization
import TestSupport
import Testing
import Tracing

@testable import WorkerService

@Suite("Quotas of images that wait", .timeLimit(.minutes(5)))
struct WaitingQuotaTests {
  /// Blocks the only thread until it is opened.
  private final class Gate: Sendable {
    let isBusy = Mutex(false)
    let isOpen = Mutex(false)
  }

  @Test("an image is refused if its caller has used up its CPU time while it waited for a thread")
  func used() async throws {
    let policy = CallerPolicy(name: "a", quotas: [CallerQuota(.cpuSeconds, per: .hour, amount: 100)])
    let accounts = CallerAccounts([policy], metrics: NOOPMetricsHandler.instance)
    let environment = WorkerEnvironment(threadCount: 1, callers: accounts, callerName: { _ in "a" })
    let account = try #require(accounts.account(of: "a"))
    let gate = Gate()
    let isRefused = try await withThrowingTaskGroup(of: Bool?.self) { group in
      defer { gate.isOpen.withLock { $0 = true } }
      group.addTask(executorPreference: environment.executor) {
        gate.isBusy.withLock { $0 = true }
        while !gate.isOpen.withLock({ $0 }) { usleep(1000) }
        return nil
      }
      try await waitUntil("the thread is busy") { gate.isBusy.withLock { $0 } }
      group.addTask {
        try await ServiceContext.withValue(.topLevel) {
          let job = ImageJob(
            [Rendition(index: nil, id: "", configuration: ProcessingConfiguration(maxWidth: 9), isPreviewed: false)],
            from: WholeImage(Data(Fixture.bytes("photo-420.jpg"))), to: RecordingSink(),
            admission: RecordingAdmission(memory: environment.memory), environment: environment,
            cancellation: Cancellation())
          do { try await job.run() } catch is CallerError { return true }
          return false
        }
      }
      try await waitUntil("the image waits") { environment.threadQueue.waitingCount == 1 }
      try account.beginImage().use(cpuTime: .seconds(101))
      gate.isOpen.withLock { $0 = true }
      var isRefused = false
      for try await outcome in group { isRefused = outcome ?? isRefused }
      return isRefused
    }
    #expect(isRefused)
  }
}
