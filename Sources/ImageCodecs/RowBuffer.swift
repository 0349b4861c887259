/// A buffer of rows of equal length, charged to an image's budget until its last copy is released.
///
/// Copies share the memory.
package struct RowBuffer {
  /// The number of bytes in a row.
  package let rowByteCount: Int
  /// The number of rows.
  package let rowCount: Int
  private let buffer: PixelBuffer

  /// Allocates `rowCount` uninitialized rows and charges them to `budget`.
  /// - Throws: the errors of `PixelBuffer.init`.
  package init(rowByteCount: Int, rowCount: Int, budget: ImageBudget) throws(CodecError) {
    self.rowByteCount = rowByteCount
    self.rowCount = rowCount
    buffer = try PixelBuffer(byteCount: rowByteCount * rowCount, budget: budget)
  }

  /// Returns `count` rows starting at `first`; traps if they are out of range.
  package func rows(first: Int = 0, count: Int) -> Strip.Rows {
    precondition(first >= 0 && count >= 0 && first + count <= rowCount, "no such rows")
    return Strip.Rows(
      unsafeBase: buffer.unsafeBase + first * rowByteCount, rowStride: rowByteCount, rowByteCount: rowByteCount,
      rowCount: count)
  }

  /// Calls `body` with the mutable bytes of a row; traps unless `index` is between 0 and `rowCount - 1`.
  package func withMutableRow<Result>(_ index: Int, _ body: (inout MutableSpan<UInt8>) -> Result) -> Result {
    var bytes = UnsafeMutableBufferPointer(
      start: unsafeRow(index).assumingMemoryBound(to: UInt8.self), count: rowByteCount
    ).mutableSpan
    return body(&bytes)
  }

  /// Returns the address of a row; traps unless `index` is between 0 and `rowCount - 1`.
  package func unsafeRow(_ index: Int) -> UnsafeMutableRawPointer {
    precondition(index >= 0 && index < rowCount, "no such row")
    return buffer.unsafeBase + index * rowByteCount
  }

  /// Copies rows to `first` and the rows that follow, at `byteOffset` in each row; traps if they do not fit.
  package func write(_ rows: Strip.Rows, at first: Int, byteOffset: Int = 0) {
    precondition(first >= 0 && first + rows.rowCount <= rowCount, "no such rows")
    precondition(byteOffset >= 0 && byteOffset + rows.rowByteCount <= rowByteCount, "rows are shorter")
    for row in 0..<rows.rowCount {
      (unsafeRow(first + row) + byteOffset).copyMemory(from: rows.unsafeRow(row), byteCount: rows.rowByteCount)
    }
  }

  /// Moves `count` rows, starting at `first`, to the start of the buffer.
  package func moveToFront(first: Int, count: Int) {
    precondition(first >= 0 && count >= 0 && first + count <= rowCount, "no such rows")
    buffer.unsafeBase.copyMemory(from: buffer.unsafeBase + first * rowByteCount, byteCount: count * rowByteCount)
  }

  /// Fills every row with copies of one pixel.
  /// - `pixel`: the bytes of the pixel; every row starts with the first of them.
  package func fill(_ pixel: [UInt8]) {
    for row in 0..<rowCount {
      withMutableRow(row) { bytes in
        for offset in bytes.indices { bytes[offset] = pixel[offset % pixel.count] }
      }
    }
  }
}
