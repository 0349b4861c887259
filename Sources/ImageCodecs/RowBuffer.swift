/// Room for rows of equal length, charged to an image's budget, freed with its last copy.
///
/// Copies share the memory.
package struct RowBuffer {
  /// The bytes of a row.
  package let rowByteCount: Int
  /// The number of rows.
  package let rowCount: Int
  private let buffer: PixelBuffer

  /// Charges and allocates `rowCount` rows, not zeroed.
  /// - Throws: as `PixelBuffer.init`.
  package init(rowByteCount: Int, rowCount: Int, budget: ImageBudget) throws(CodecError) {
    self.rowByteCount = rowByteCount
    self.rowCount = rowCount
    buffer = try PixelBuffer(byteCount: rowByteCount * rowCount, budget: budget)
  }

  /// Lends `count` rows from `first` on; more than there are trap.
  package func rows(first: Int = 0, count: Int) -> Strip.Rows {
    precondition(first >= 0 && count >= 0 && first + count <= rowCount, "no such rows")
    return Strip.Rows(
      unsafeBase: buffer.unsafeBase + first * rowByteCount, rowStride: rowByteCount, rowByteCount: rowByteCount,
      rowCount: count)
  }

  /// Lends a row for changing it, 0 to `rowCount - 1`; anything else traps.
  package func withMutableRow<Result>(_ index: Int, _ body: (inout MutableSpan<UInt8>) -> Result) -> Result {
    var bytes = UnsafeMutableBufferPointer(
      start: unsafeRow(index).assumingMemoryBound(to: UInt8.self), count: rowByteCount
    ).mutableSpan
    return body(&bytes)
  }

  /// The first byte of a row, 0 to `rowCount - 1`; anything else traps.
  package func unsafeRow(_ index: Int) -> UnsafeMutableRawPointer {
    precondition(index >= 0 && index < rowCount, "no such row")
    return buffer.unsafeBase + index * rowByteCount
  }

  /// Copies rows to `first` and those that follow it, each to `byteOffset` in its row; what does not fit traps.
  package func write(_ rows: Strip.Rows, at first: Int, byteOffset: Int = 0) {
    precondition(first >= 0 && first + rows.rowCount <= rowCount, "no such rows")
    precondition(byteOffset >= 0 && byteOffset + rows.rowByteCount <= rowByteCount, "rows are shorter")
    for row in 0..<rows.rowCount {
      (unsafeRow(first + row) + byteOffset).copyMemory(from: rows.unsafeRow(row), byteCount: rows.rowByteCount)
    }
  }

  /// Moves `count` rows from `first` on to the beginning.
  package func moveToFront(first: Int, count: Int) {
    precondition(first >= 0 && count >= 0 && first + count <= rowCount, "no such rows")
    buffer.unsafeBase.copyMemory(from: buffer.unsafeBase + first * rowByteCount, byteCount: count * rowByteCount)
  }

  /// Fills every row with one pixel.
  /// - `pixel`: its bytes; the first is the first of each row.
  package func fill(_ pixel: [UInt8]) {
    for row in 0..<rowCount {
      withMutableRow(row) { bytes in
        for offset in bytes.indices { bytes[offset] = pixel[offset % pixel.count] }
      }
    }
  }
}
