internal import CPixels
package import ImageCodecs

/// The division of an axis of samples into cells.
package struct CellAxis: Sendable, Hashable {
  /// The number of samples.
  package let length: Int
  /// The number of samples of the first cell.
  package let first: Int
  /// The number of samples of the other cells; the last one has what is left.
  package let side: Int

  /// Creates the division of `length` samples; all numbers must be above 0.
  package init(length: Int, first: Int, side: Int) {
    precondition(length > 0 && first > 0 && side > 0)
    self.length = length
    self.first = min(first, length)
    self.side = side
  }

  /// The number of cells.
  package var count: Int { 1 + (length - first + side - 1) / side }
}

/// Computes the mean pixels of the cells of a plane from its rows.
package final class CellGrid {
  /// The cells of a row.
  package let across: CellAxis
  /// The cells of a column.
  package let down: CellAxis
  /// The number of samples of a pixel.
  package let channelCount: Int
  private let sums: RowBuffer
  private let cells: RowBuffer
  /// The index of the row of cells to which the next row belongs.
  package private(set) var index = 0
  /// The number of rows that still belong to the current row of cells.
  package private(set) var remainingCount: Int
  private var receivedCount = 0
  private var waitingCount: Int

  /// Creates a grid and allocates its memory.
  /// - Throws: `outOfMemory` if the budget is exhausted.
  package init(across: CellAxis, down: CellAxis, channelCount: Int, budget: ImageBudget) throws(CodecError) {
    precondition((1...4).contains(channelCount))
    (self.across, self.down, self.channelCount) = (across, down, channelCount)
    sums = try RowBuffer(
      rowByteCount: across.length * channelCount * MemoryLayout<UInt32>.size, rowCount: 1, budget: budget)
    cells = try RowBuffer(rowByteCount: across.count * channelCount, rowCount: down.count, budget: budget)
    sums.unsafeRow(0).initializeMemory(as: UInt8.self, repeating: 0, count: sums.rowByteCount)
    (remainingCount, waitingCount) = (down.first, down.length - down.first)
  }

  /// Returns the number of bytes that a grid charges.
  package static func byteCount(across: CellAxis, down: CellAxis, channelCount: Int) -> Int {
    channelCount * (across.length * MemoryLayout<UInt32>.size + across.count * down.count)
  }

  /// Whether the next row is the first of a row of cells.
  package var isAtStart: Bool { receivedCount == 0 }
  /// Whether all rows have arrived.
  package var isComplete: Bool { remainingCount == 0 }

  /// Adds rows of 8-bit samples, at most `remainingCount` of them.
  package func add(_ rows: Strip.Rows) {
    precondition(rows.rowCount <= remainingCount && rows.rowByteCount >= across.length * channelCount)
    guard !rows.isEmpty else { return }
    let samples = sums.unsafeRow(0).assumingMemoryBound(to: UInt32.self)
    cpixels_add_rows(
      rows.bytes(0), rows.rowStride, rows.rowCount, samples, across.length * channelCount,
      CPIXELS_ISA_BEST)
    receivedCount += rows.rowCount
    remainingCount -= rows.rowCount
    guard remainingCount == 0 else { return }
    cpixels_take_cells(
      samples, across.length, UInt32(channelCount), across.first, across.side, receivedCount,
      cells.bytes(index))
    index += 1
    receivedCount = 0
    remainingCount = min(down.side, waitingCount)
    waitingCount -= remainingCount
  }

  /// The mean pixels of all cells, row by row.
  package var samples: [UInt8] {
    let byteCount = cells.rowCount * cells.rows(count: 1).rowByteCount
    return Array(UnsafeRawBufferPointer(start: cells.rows(count: cells.rowCount).unsafeBase, count: byteCount))
  }
}
