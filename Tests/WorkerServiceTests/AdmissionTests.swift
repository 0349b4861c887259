import Admission
import AsyncAlgorithms
import Foundation
import ImagePipeline
import Synchronization
import Testing

@testable import WorkerService

@Suite("Drain state")
struct DrainStateTests {
  private let drain = DrainState()

  @Test("calls each handler once when the drain begins, and none that was removed")
  func handlers() {
    let calls = Mutex<[String]>([])
    let removed = drain.start.addHandler { calls.withLock { $0.append("removed") } }
    _ = drain.start.addHandler { calls.withLock { $0.append("kept") } }
    drain.start.removeHandler(removed)
    #expect(calls.withLock { $0 }.isEmpty && !drain.isDraining)
    drain.begin()
    drain.begin()
    #expect(calls.withLock { $0 } == ["kept"] && drain.isDraining)
    _ = drain.start.addHandler { calls.withLock { $0.append("late") } }
    #expect(calls.withLock { $0 } == ["kept", "late"])
  }

  @Test("refuses calls after its end")
  func refusals() async throws {
    #expect(try await drain.withWork { _ in drain.workCount } == 1)
    drain.begin()
    #expect(try await drain.withWork { _ in 1 } == 1)
    #expect(drain.workCount == 0 && drain.startedCount == 2)
    drain.cancelWork()
    await #expect(throws: DrainError.self) { try await drain.withWork { _ in 1 } }
    #expect(drain.startedCount == 2)
  }

  @Test("cancels work when its time is over, and is then the reason that callers see")
  func reasons() async throws {
    let failure = PipelineError(.corruptImage, "broken")
    try await drain.withWork { cancellation in
      drain.begin()
      #expect(!cancellation.isCancelled)
      // A caller that disconnected is not informed of the drain.
      #expect(drain.reason(PipelineError.cancelled) is PipelineError)
      drain.cancelWork()
      #expect(cancellation.isCancelled)
      #expect(drain.reason(PipelineError.cancelled) is DrainError)
      #expect(drain.reason(failure) as? PipelineError == failure)
    }
  }
}

@Suite("Worker limits")
struct WorkerLimitsTests {
  @Test("accept a message of exactly the limit, but not one byte more")
  func message() throws {
    let limits = WorkerLimits(maxMessageByteCount: 10)
    try limits.check(messageByteCount: 10)
    let error = #expect(throws: PipelineError.self) { try limits.check(messageByteCount: 11) }
    #expect(error?.code == .limitExceeded && error?.limit?.limit == 10 && error?.limit?.value == 11)
  }
}

@Suite("UploadAdmission", .timeLimit(.minutes(15)))
struct UploadAdmissionTests {
  private let table = ItemTable(maxOpenUploads: 2, maxWholeImages: 1)
  private let memory = MemoryBudget(limit: 100, maxWaiting: 4)

  private let shares = ConnectionShares(memoryLimit: 1000)

  private func admission(_ item: BatchItem) -> UploadAdmission {
    UploadAdmission(item: item, table: table, memory: memory, shares: shares, connection: "")
  }

  private func code(_ item: BatchItem, _ byteCount: Int) async -> PipelineError.Code? {
    do throws(PipelineError) {
      _ = try await admission(item).reserve(byteCount, cancellation: item.cancellation)
      return nil
    } catch { return error.code }
  }

  @Test("a refused upload does not block another; one with reserved memory does")
  func refused() async throws {
    let stream = Cancellation()
    let items = ["a", "b"].map {
      BatchItem(id: $0, key: "", renditions: [], content: .upload(AsyncChannel()), stream: stream)
    }
    for item in items { await table.begin(item) }
    #expect(await code(items[0], 101) == .limitExceeded)
    #expect(table.mayWaitForMemory(items[1]))
    table.note(.none, of: items[1])
    let reservation = try await admission(items[1]).reserve(60, cancellation: items[1].cancellation)
    // It would wait for an upload whose next bytes come after its own on the stream.
    #expect(await code(items[0], 50) == .overloaded)
    #expect(reservation.byteCount == 60 && memory.used == 60 && memory.waitingCount == 0)
  }
}
