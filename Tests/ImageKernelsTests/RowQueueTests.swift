import ImageCodecs
import ImageKernels
import Testing

@Suite("Row queue")
struct RowQueueTests {
  private static func rows(_ values: Range<UInt8>) throws -> RowBuffer { try buffer(values.map { [$0, $0] }) }

  @Test("returns rows in order while it moves and while it grows")
  func order() throws {
    let queue = try RowQueue(rowByteCount: 2, capacity: 4, budget: ImageBudget(limit: 1 << 20))
    var taken: [[UInt8]] = []
    var next: UInt8 = 0
    for (appended, removed) in [(3, 2), (3, 1), (1, 4), (9, 3), (2, 8)] {
      let rows = try Self.rows(next..<next + UInt8(appended))
      try queue.append(rows.rows(count: appended))
      next += UInt8(appended)
      taken += queue.take(removed).contents
    }
    #expect(taken == (0..<next).map { [$0, $0] })
    #expect(queue.rowCount == 0)
  }

  @Test("charges its growth, and throws if there is no room")
  func budget() throws {
    let budget = ImageBudget(limit: 2048)
    let queue = try RowQueue(rowByteCount: 2, capacity: 4, budget: budget)
    let many = try Self.rows(0..<200)
    let error = #expect(throws: CodecError.self) {
      for _ in 0..<10 { try queue.append(many.rows(count: 200)) }
    }
    #expect(error?.code == .outOfMemory)
  }
}
