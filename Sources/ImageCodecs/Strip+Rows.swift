extension Strip {
  /// Rows of one plane, lent by whoever made them until its next call.
  ///
  /// Every part that is taken of them lies inside them; asking for more traps. Only the kernels' and the codecs' own
  /// wrappers use the addresses.
  package struct Rows {
    /// The first byte of the first row; any address when there are no rows.
    package let unsafeBase: UnsafeRawPointer
    /// Bytes from one row to the next.
    package let rowStride: Int
    /// Bytes of one row.
    package let rowByteCount: Int
    /// The number of rows.
    package let rowCount: Int

    /// - `unsafeBase`: of `rowCount` rows of `rowByteCount` bytes, `rowStride` bytes apart, which the caller vouches for.
    package init(unsafeBase: UnsafeRawPointer, rowStride: Int, rowByteCount: Int, rowCount: Int) {
      self.unsafeBase = unsafeBase
      self.rowStride = rowStride
      self.rowByteCount = rowByteCount
      self.rowCount = rowCount
    }

    /// No rows.
    package static var none: Rows {
      Rows(unsafeBase: UnsafeRawPointer(bitPattern: 64)!, rowStride: 0, rowByteCount: 0, rowCount: 0)
    }
  }
}

extension Strip.Rows {
  /// Whether there are no rows.
  package var isEmpty: Bool { rowCount == 0 }

  /// Lends the bytes of a row, 0 to `rowCount - 1`; anything else traps.
  package func withRow<Result: ~Copyable>(_ index: Int, _ body: (RawSpan) -> Result) -> Result {
    body(UnsafeRawBufferPointer(start: unsafeRow(index), count: rowByteCount).bytes)
  }

  /// The first byte of a row, 0 to `rowCount - 1`; anything else traps.
  package func unsafeRow(_ index: Int) -> UnsafeRawPointer {
    precondition(index >= 0 && index < rowCount, "no such row")
    return unsafeBase + index * rowStride
  }

  /// The first `count` rows, or all when there are fewer.
  package func prefix(_ count: Int) -> Strip.Rows { part(first: 0, count: min(count, rowCount)) }

  /// Leaves out the first `count` rows, at most `rowCount`.
  package mutating func dropFirst(_ count: Int) { self = part(first: count, count: rowCount - count) }

  /// These rows, `count` at a time.
  package func portions(of count: Int) -> [Strip.Rows] {
    stride(from: 0, to: rowCount, by: count).map { part(first: $0, count: min(count, rowCount - $0)) }
  }

  /// `count` rows from `first` on; `byteCount` bytes of each, from `byteOffset` on.
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
