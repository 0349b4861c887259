extension Strip {
  /// Rows of one plane, borrowed from their producer until its next call.
  ///
  /// Access is bounds-checked: requests outside the rows trap. Only the wrappers of the kernels and codecs use the
  /// addresses.
  package struct Rows {
    /// The address of the first row; unspecified if there are no rows.
    package let unsafeBase: UnsafeRawPointer
    /// The distance in bytes from one row to the next.
    package let rowStride: Int
    /// The number of bytes in a row.
    package let rowByteCount: Int
    /// The number of rows.
    package let rowCount: Int

    /// Creates rows from memory whose layout the caller guarantees.
    /// - `unsafeBase`: the address of `rowCount` rows of `rowByteCount` bytes, `rowStride` bytes apart.
    package init(unsafeBase: UnsafeRawPointer, rowStride: Int, rowByteCount: Int, rowCount: Int) {
      self.unsafeBase = unsafeBase
      self.rowStride = rowStride
      self.rowByteCount = rowByteCount
      self.rowCount = rowCount
    }

    /// No rows.
    package static var none: Rows {
      // 64 is no null pointer.
      Rows(unsafeBase: UnsafeRawPointer(bitPattern: 64)!, rowStride: 0, rowByteCount: 0, rowCount: 0)
    }
  }
}

extension Strip.Rows {
  /// Whether there are no rows.
  package var isEmpty: Bool { rowCount == 0 }

  /// Calls `body` with the bytes of a row; traps unless `index` is between 0 and `rowCount - 1`.
  package func withRow<Result: ~Copyable>(_ index: Int, _ body: (RawSpan) -> Result) -> Result {
    body(UnsafeRawBufferPointer(start: unsafeRow(index), count: rowByteCount).bytes)
  }

  /// Returns the address of a row; traps unless `index` is between 0 and `rowCount - 1`.
  package func unsafeRow(_ index: Int) -> UnsafeRawPointer {
    precondition(index >= 0 && index < rowCount, "no such row")
    return unsafeBase + index * rowStride
  }

  /// Returns the first `count` rows, or all rows if there are fewer.
  package func prefix(_ count: Int) -> Strip.Rows { part(first: 0, count: min(count, rowCount)) }

  /// Removes the first `count` rows, at most `rowCount`.
  package mutating func dropFirst(_ count: Int) { self = part(first: count, count: rowCount - count) }

  /// Returns these rows in portions of at most `count` rows.
  package func portions(of count: Int) -> [Strip.Rows] {
    stride(from: 0, to: rowCount, by: count).map { part(first: $0, count: min(count, rowCount - $0)) }
  }

  /// Returns `byteCount` bytes, starting at `byteOffset`, of `count` rows, starting at `first`.
  package func part(first: Int, count: Int, byteOffset: Int, byteCount: Int) -> Strip.Rows {
    precondition(first >= 0 && count >= 0 && first + count <= rowCount, "no such rows")
    precondition(byteOffset >= 0 && byteCount >= 0 && byteOffset + byteCount <= rowByteCount, "rows are shorter")
    return Strip.Rows(
      unsafeBase: unsafeBase + first * rowStride + byteOffset, rowStride: rowStride, rowByteCount: byteCount,
      rowCount: count)
  }

  private func part(first: Int, count: Int) -> Strip.Rows {
    part(first: first, count: count, byteOffset: 0, byteCount: rowByteCount)
  }
}
