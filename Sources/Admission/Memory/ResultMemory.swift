package import ImagePipeline
internal import Synchronization

/// Memory for results that are buffered until the last one is complete; it is returned to the budget when the object is
/// destroyed.
///
/// It counts like buffered files, and is never waited for: images that keep memory while they wait for more could wait for
/// each other.
package final class ResultMemory: Sendable {
  private let budget: MemoryBudget
  private let byteCount: Mutex<Int>

  /// Charges `byteCount` bytes to a budget.
  /// - Throws: `limitExceeded` if the bytes can never fit, `overloaded` if they do not fit now.
  package init(_ byteCount: Int, of budget: MemoryBudget) throws(PipelineError) {
    let limit = budget.reservationLimit
    guard byteCount <= limit else {
      throw PipelineError(
        .limitExceeded,
        "\(byteCount) bytes to buffer the results are above the limit memory_limit of \(limit), half of the memory",
        limit: .init(name: "memory_limit", limit: UInt64(limit), value: UInt64(byteCount)))
    }
    if let others = budget.holdIfFree(byteCount) {
      throw PipelineError(
        .overloaded,
        "\(byteCount) bytes to buffer the results are not free: others use \(others) of \(limit); try again later")
    }
    self.budget = budget
    self.byteCount = Mutex(byteCount)
  }

  deinit { budget.endHold(byteCount.withLock { $0 }) }

  /// Returns what exceeds `byteCount` bytes to the budget.
  package func shrink(to byteCount: Int) {
    let surplus = self.byteCount.withLock { current in
      defer { current = min(current, byteCount) }
      return max(0, current - byteCount)
    }
    if surplus > 0 { budget.endHold(surplus) }
  }
}
