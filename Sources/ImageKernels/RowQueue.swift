package import ImageCodecs

/// A first-in, first-out queue of rows of one plane that wait for the rows of another plane.
package final class RowQueue {
  private var buffer: RowBuffer
  private let budget: ImageBudget
  private var first = 0
  // Accesses to it are checked at runtime unless it is private.
  private var waitingCount = 0
  /// The number of rows in the queue.
  package var rowCount: Int { waitingCount }

  /// Creates an empty queue.
  /// - `capacity`: the initial number of rows; the queue grows if its plane runs further ahead.
  /// - Throws: `outOfMemory` if the budget is exhausted.
  package init(rowByteCount: Int, capacity: Int, budget: ImageBudget) throws(CodecError) {
    self.budget = budget
    buffer = try RowBuffer(rowByteCount: rowByteCount, rowCount: capacity, budget: budget)
  }

  /// Copies rows to the end of the queue, and grows it if needed.
  /// - Throws: `outOfMemory` if the budget is exhausted.
  package func append(_ rows: Strip.Rows) throws(CodecError) {
    if rows.isEmpty { return }
    try makeRoom(for: rows.rowCount)
    buffer.write(rows, at: first + rowCount)
    waitingCount += rows.rowCount
  }

  /// Removes and returns the first `count` rows, at most `rowCount`.
  ///
  /// They are valid until the next append.
  package func take(_ count: Int) -> Strip.Rows {
    precondition(count <= rowCount, "fewer rows wait")
    let rows = buffer.rows(first: first, count: count)
    first += count
    waitingCount -= count
    return rows
  }

  /// The rows, which are valid until the next append.
  var rows: Strip.Rows { buffer.rows(first: first, count: rowCount) }

  /// Returns the address of a row, of 8-bit samples.
  func bytes(_ index: Int) -> UnsafeMutablePointer<UInt8> { buffer.bytes(first + index) }

  private func makeRoom(for count: Int) throws(CodecError) {
    guard first + rowCount + count > buffer.rowCount else { return }
    if rowCount + count <= buffer.rowCount {
      buffer.moveToFront(first: first, count: rowCount)
    } else {
      let larger = try RowBuffer(
        rowByteCount: buffer.rowByteCount, rowCount: (rowCount + count) * 2, budget: budget)
      larger.write(buffer.rows(first: first, count: rowCount), at: 0)
      buffer = larger
    }
    first = 0
  }
}
