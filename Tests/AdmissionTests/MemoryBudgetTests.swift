import Admission
import ImagePipeline
import TestSupport
import Testing
import WorkThreads

@Suite("Memory budget")
struct MemoryBudgetTests {
  @Test("grants memory in arrival order, and reclaims it when reservations end")
  func arrivalOrder() async throws {
    let budget = MemoryBudget(limit: 100, maxWaiting: 10)
    let first = try await budget.reserve(60, cancellation: Cancellation())
    #expect(budget.used == 60)
    async let large = waited(budget, 80, 1)
    try await waitUntil("one waits") { budget.waitingCount == 1 }
    // It would fit next to the first reservation, but not next to the one that waits.
    async let small = waited(budget, 30, 2)
    try await waitUntil("two wait") { budget.waitingCount == 2 }
    end(first)
    #expect(await [large, small] == [1, 2])
    #expect(budget.used == 0 && budget.peak <= 100 && budget.waitingCount == 0)
  }

  @Test("spare memory is reserved only if half of the budget remains and nobody waits, and is returned when it shrinks")
  func spare() async throws {
    let budget = MemoryBudget(limit: 100, maxWaiting: 10)
    func isSpare(_ byteCount: Int) -> Bool { budget.reserveSpare(byteCount) != nil }
    #expect(!isSpare(51))
    guard var spare = budget.reserveSpare(50) else {
      Issue.record("half of the budget was not spare")
      return
    }
    #expect(budget.used == 50 && !isSpare(1))
    async let large = waited(budget, 80, 1)
    try await waitUntil("one waits") { budget.waitingCount == 1 }
    spare.shrink(to: 60)
    #expect(budget.used == 50)
    spare.shrink(to: 30)
    #expect(budget.used == 30)
    // There would be room for it if nobody waited.
    #expect(!isSpare(1))
    spare.shrink(to: 20)
    #expect(await large == 1)
    #expect(budget.used == 20)
    end(spare)
    #expect(budget.used == 0)
  }

  @Test("uploads leave a quarter to images whose bytes have arrived, except for the only one")
  func uploads() async throws {
    let budget = MemoryBudget(limit: 100, maxWaiting: 10)
    let first = try await budget.reserve(50, isUpload: true, cancellation: Cancellation())
    #expect(throws: PipelineError.self) { end(try budget.reserveNow(26, isUpload: true)) }
    async let second = waited(budget, 30, isUpload: true, 1)
    try await waitUntil("one waits") { budget.waitingCount == 1 }
    // The head waits for a client: uploads wait behind it, and images that have arrived do not.
    #expect(throws: PipelineError.self) { end(try budget.reserveNow(5, isUpload: true)) }
    end(try budget.reserveNow(50))
    #expect(budget.used == 50)
    budget.endUpload(50)
    #expect(await second == 1)
    end(first)
    #expect(budget.used == 0)
    let only = try budget.reserveNow(90, isUpload: true)
    budget.endUpload(90)
    end(only)
  }

  @Test("results use what files and messages leave of half of the memory, and do not wait")
  func results() throws {
    let budget = MemoryBudget(limit: 100, maxWaiting: 10)
    var results: ResultMemory? = try ResultMemory(40, of: budget)
    #expect(budget.buffered == 40)
    let full = #expect(throws: PipelineError.self) { try ResultMemory(11, of: budget) }
    #expect(full?.code == .overloaded)
    let tooLarge = #expect(throws: PipelineError.self) { try ResultMemory(51, of: budget) }
    #expect(tooLarge?.code == .limitExceeded && tooLarge?.limit?.name == "memory_limit" && budget.buffered == 40)
    results?.shrink(to: 50)
    #expect(budget.buffered == 40)
    results?.shrink(to: 30)
    #expect(budget.buffered == 30)
    results = nil
    #expect(budget.buffered == 0)
  }

  @Test("remembers the most that was reserved at once")
  func peak() throws {
    let budget = MemoryBudget(limit: 100, maxWaiting: 10)
    end(try budget.reserveNow(60))
    let later = try budget.reserveNow(10)
    #expect(budget.used == 10 && budget.peak == 60)
    end(later)
    #expect(budget.used == 0 && budget.peak == 60)
  }

  @Test("small reservations bypass a large one if that does not delay it")
  func passing() async throws {
    let budget = MemoryBudget(limit: 100, maxWaiting: 10)
    let stalled = try await budget.reserve(60, cancellation: Cancellation())
    async let large = waited(budget, 80, 1)
    try await waitUntil("one waits") { budget.waitingCount == 1 }
    // Together with the large reservation they fill the budget.
    let passed = [
      Box(try await budget.reserve(15, cancellation: Cancellation())), Box(try budget.reserveNow(5)),
    ]
    #expect(budget.used == 80 && budget.waitingCount == 1)
    let full = #expect(throws: PipelineError.self) { end(try budget.reserveNow(1)) }
    #expect(full?.code == .overloaded)
    end(stalled)
    #expect(await large == 1)
    #expect(budget.used == 20)
    withExtendedLifetime(passed) {}
  }

  @Test("a waiting reservation bypasses a large one when another bypassing one ends")
  func passingInLine() async throws {
    let budget = MemoryBudget(limit: 100, maxWaiting: 10)
    let stalled = try await budget.reserve(60, cancellation: Cancellation())
    let cancellation = Cancellation()
    async let large = code(budget, 80, cancellation)
    try await waitUntil("one waits") { budget.waitingCount == 1 }
    let passed = try await budget.reserve(15, cancellation: Cancellation())
    async let small = waited(budget, 10, 2)
    try await waitUntil("two wait") { budget.waitingCount == 2 }
    end(passed)
    #expect(await small == 2)
    #expect(budget.used == 60 && budget.waitingCount == 1)
    cancellation.cancel()
    #expect(await large == .cancelled)
    end(stalled)
    #expect(budget.used == 0)
  }

  /// Owns a reservation.
  private final class Box: Sendable {
    private let reservation: Reservation
    init(_ reservation: consuming Reservation) { self.reservation = reservation }
  }

  private func end(_ reservation: consuming Reservation) {}

  private func waited(_ budget: MemoryBudget, _ byteCount: Int, isUpload: Bool = false, _ value: Int) async -> Int {
    do {
      let reservation = try await budget.reserve(byteCount, isUpload: isUpload, cancellation: Cancellation())
      if isUpload { budget.endUpload(byteCount) }
      return reservation.byteCount == byteCount ? value : -1
    } catch { return -2 }
  }

  @Test("counts the memory of uploads, and refuses more than half of the limit")
  func holds() async throws {
    let budget = MemoryBudget(limit: 8 << 20, maxWaiting: 0)
    var first = Hold(budget: budget)
    try first.grow(to: 3 << 20)
    try first.grow(to: 1 << 20)
    #expect(budget.buffered == 3 << 20)
    let error = #expect(throws: PipelineError.self) {
      var second = Hold(budget: budget)
      try second.grow(to: 2 << 20)
    }
    #expect(error?.code == .overloaded)
    #expect(error?.message.contains("\(2 << 20)") == true && error?.message.contains("\(3 << 20)") == true)
    #expect(throws: PipelineError(exceeding: "memory_limit", limit: 4 << 20, value: 5 << 20, unit: Self.unit)) {
      try first.grow(to: 5 << 20)
    }
    // Next to it there is room for 5 MiB; but while nothing is reserved, any image is admitted.
    let reserved = try await budget.reserve(4 << 20, cancellation: Cancellation())
    let full = await #expect(throws: PipelineError.self) { () async throws in
      end(try await budget.reserve(2 << 20, cancellation: Cancellation()))
    }
    #expect(full?.code == .overloaded)
    end(reserved)
    end(try await budget.reserve(8 << 20, cancellation: Cancellation()))
    end(first)
    #expect(budget.buffered == 0 && budget.used == 0)
  }

  private static let unit = "bytes to buffer its file, which may use half of the memory"

  private func end(_ hold: consuming Hold) {}

  @Test("counts messages as buffered uploads, and leaves room for small messages")
  func messages() throws {
    let budget = MemoryBudget(limit: 8 << 20, maxWaiting: 0)
    #expect(budget.holdNow(3 << 20) && !budget.holdNow(1 << 20) && budget.holdNow(3 << 18))
    #expect(budget.buffered == 15 << 18)
    let message = MessageRequest(byteCount: 1 << 18, connection: 1, isContinuation: false, bufferedByteCount: 1024) {}
    #expect(budget.admit(message) == .granted)
    budget.endHold(15 << 18)
    #expect(budget.buffered == 0)
  }

  @Test("the memory of other processes counts and is never refused")
  func processes() throws {
    let budget = MemoryBudget(limit: 8 << 20, maxWaiting: 0)
    var process = ProcessCharge(budget: budget)
    process.grow(to: 3 << 20)
    process.grow(to: 1 << 20)
    let image = try budget.reserveNow(1 << 20)
    var upload = Hold(budget: budget)
    try upload.grow(to: 4 << 20)
    #expect(throws: PipelineError.self) { end(try budget.reserveNow(1)) }
    process.grow(to: 7 << 20)
    #expect(budget.processes == 7 << 20 && budget.buffered == 4 << 20)
    end(process)
    end(try budget.reserveNow(3 << 20))
    end(image)
    #expect(budget.processes == 0)
  }

  private func end(_ charge: consuming ProcessCharge) {}

  @Test("admits waiting images when an upload releases memory")
  func endsHold() async throws {
    let budget = MemoryBudget(limit: 8 << 20, maxWaiting: 1)
    let reserved = try await budget.reserve(4 << 20, cancellation: Cancellation())
    var upload = Hold(budget: budget)
    try upload.grow(to: 4 << 20)
    async let waiting = waited(budget, 4 << 20, 3)
    try await waitUntil("one waits") { budget.waitingCount == 1 }
    end(upload)
    #expect(await waiting == 3)
    end(reserved)
  }

  @Test("refuses what can never fit, naming the limit and the value")
  func neverFits() async {
    let budget = MemoryBudget(limit: 100, maxWaiting: 10)
    let error = await #expect(throws: PipelineError.self) { () async throws in
      end(try await budget.reserve(101, cancellation: Cancellation()))
    }
    #expect(error?.code == .limitExceeded && error?.limit?.limit == 100 && error?.limit?.value == 101)
  }

  @Test("refuses at once when too many wait")
  func tooManyWait() async throws {
    let budget = MemoryBudget(limit: 100, maxWaiting: 0)
    let buffered = try await budget.reserve(100, cancellation: Cancellation())
    let error = await #expect(throws: PipelineError.self) { () async throws in
      end(try await budget.reserve(1, cancellation: Cancellation()))
    }
    #expect(error?.code == .overloaded)
    end(buffered)
    #expect(budget.used == 0)
  }

  @Test("a cancelled image leaves the queue and unblocks those behind it")
  func cancelledWaiter() async throws {
    let budget = MemoryBudget(limit: 100, maxWaiting: 10)
    let buffered = try await budget.reserve(50, cancellation: Cancellation())
    let cancellation = Cancellation()
    async let large: PipelineError.Code? = code(budget, 90, cancellation)
    try await waitUntil("one waits") { budget.waitingCount == 1 }
    async let small = waited(budget, 40, 7)
    try await waitUntil("two wait") { budget.waitingCount == 2 }
    cancellation.cancel()
    #expect(await large == .cancelled)
    #expect(await small == 7)
    end(buffered)
    #expect(budget.used == 0)
  }

  private func code(
    _ budget: MemoryBudget, _ byteCount: Int, _ cancellation: Cancellation
  ) async -> PipelineError.Code? {
    do {
      end(try await budget.reserve(byteCount, cancellation: cancellation))
      return nil
    } catch { return error.code }
  }
}
