package import ImagePipeline

/// The bytes that an upload buffers before it has a plan; they are returned to the budget when the value is destroyed.
package struct Hold: ~Copyable, Sendable {
  /// The granularity of counting in bytes, so that small flow-control windows do not each take the budget's lock.
  private static let portionByteCount = 256 * 1024

  private let budget: MemoryBudget
  private var byteCount = 0

  /// Creates a count of 0 bytes in `budget`.
  package init(budget: MemoryBudget) {
    self.budget = budget
  }

  /// Increases the count to at least `byteCount` bytes; it never decreases the count.
  /// - Parameter byteCount: The total number of buffered bytes.
  /// - Throws: `overloaded` if other uploads buffer too much, `limitExceeded` if the bytes can never fit.
  package mutating func grow(to byteCount: Int) throws(PipelineError) {
    guard byteCount > self.byteCount else { return }
    let portions = (byteCount - self.byteCount + Self.portionByteCount - 1) / Self.portionByteCount
    try budget.hold(portions * Self.portionByteCount, beside: self.byteCount)
    self.byteCount += portions * Self.portionByteCount
  }

  /// Returns all counted bytes to the budget.
  package mutating func release() {
    if byteCount > 0 { budget.endHold(byteCount) }
    byteCount = 0
  }

  deinit { if byteCount > 0 { budget.endHold(byteCount) } }
}
