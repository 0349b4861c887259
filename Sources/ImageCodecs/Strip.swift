internal import CCodecs

/// Rows of every plane of an image, from top to bottom, borrowed from their producer.
///
/// A strip is valid for one call and cannot be copied. Planes may have different numbers of rows: a 4:2:0 chroma plane
/// has about half as many as its luma plane, and filters delay planes by different amounts.
package struct Strip: ~Copyable {
  /// The layout of the samples.
  package let format: PixelFormat
  /// The rows of each plane; unused planes are empty.
  package let planes: (Rows, Rows, Rows)

  /// Creates a strip of a format with one plane.
  package init(format: PixelFormat, rows: Rows) {
    self.format = format
    planes = (rows, rows.prefix(0), rows.prefix(0))
  }

  /// Creates a strip of a format with three planes.
  package init(format: PixelFormat, planes: (Rows, Rows, Rows)) {
    self.format = format
    self.planes = planes
  }

  /// Creates a strip with the planes in `rows`, of which there are one or three.
  package init(format: PixelFormat, rows: [Rows]) {
    if rows.count == 3 {
      self.init(format: format, planes: (rows[0], rows[1], rows[2]))
    } else {
      self.init(format: format, rows: rows[0])
    }
  }

  /// Returns the rows of the plane at `index`.
  package func plane(_ index: Int) -> Rows {
    switch index {
    case 0: planes.0
    case 1: planes.1
    default: planes.2
    }
  }
}

extension Strip {
  /// Creates a strip from the rows of a decoder.
  /// - `layout`: the decoder's layout.
  init(_ rows: ccodecs_rows, layout: PixelLayout) {
    func plane(_ index: Int, _ base: UnsafePointer<UInt8>?, _ stride: Int, _ count: UInt32) -> Rows {
      guard let base, count > 0, index < layout.planes.count else { return .none }
      return Rows(
        unsafeBase: base, rowStride: stride,
        rowByteCount: layout.planes[index].width * layout.format.pixelByteCount, rowCount: Int(count))
    }
    self.init(
      format: layout.format,
      planes: (
        plane(0, rows.planes.0, rows.row_strides.0, rows.row_counts.0),
        plane(1, rows.planes.1, rows.row_strides.1, rows.row_counts.1),
        plane(2, rows.planes.2, rows.row_strides.2, rows.row_counts.2)
      ))
  }

  var handle: ccodecs_rows {
    func base(_ rows: Rows) -> UnsafePointer<UInt8>? { rows.unsafeBase.assumingMemoryBound(to: UInt8.self) }
    return ccodecs_rows(
      planes: (base(planes.0), base(planes.1), base(planes.2)),
      row_strides: (planes.0.rowStride, planes.1.rowStride, planes.2.rowStride),
      row_counts: (UInt32(planes.0.rowCount), UInt32(planes.1.rowCount), UInt32(planes.2.rowCount)))
  }
}

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
