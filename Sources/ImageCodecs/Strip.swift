internal import CCodecs

/// Some rows of every plane of a picture, top to bottom, borrowed from whoever made them.
///
/// A strip is lent for the length of one call and can't be copied. Planes may bring different numbers of rows: a
/// 4:2:0 chroma plane brings about half as many as its luma plane, and filters delay planes differently.
package struct Strip: ~Copyable {
  /// One plane's rows.
  package struct Rows {
    /// The first byte of the first row; any address when there are no rows.
    package var base: UnsafeRawPointer
    /// Bytes from one row to the next.
    package var rowStride: Int
    package var rowCount: Int

    package init(base: UnsafeRawPointer, rowStride: Int, rowCount: Int) {
      self.base = base
      self.rowStride = rowStride
      self.rowCount = rowCount
    }
  }

  package let format: PixelFormat
  package let planes: (Rows, Rows, Rows)

  /// A strip of a format with one plane.
  package init(format: PixelFormat, rows: Rows) {
    self.format = format
    planes = (rows, Rows(base: rows.base, rowStride: 0, rowCount: 0), Rows(base: rows.base, rowStride: 0, rowCount: 0))
  }

  /// A strip of a format with three planes.
  package init(format: PixelFormat, planes: (Rows, Rows, Rows)) {
    self.format = format
    self.planes = planes
  }

  package func plane(_ index: Int) -> Rows {
    switch index {
    case 0: planes.0
    case 1: planes.1
    default: planes.2
    }
  }

  /// Rows of the plane at `index`, 0 to `format.planeCount - 1`.
  package func rowCount(ofPlane index: Int) -> Int { plane(index).rowCount }

  /// Lends the first `byteCount` bytes of a row.
  /// - `row`: 0 to `rowCount(ofPlane: plane) - 1`; anything else traps.
  package func withRow<Result: ~Copyable>(
    _ row: Int, ofPlane index: Int, byteCount: Int, _ body: (RawSpan) -> Result
  ) -> Result {
    let rows = plane(index)
    precondition(row >= 0 && row < rows.rowCount && byteCount >= 0 && byteCount <= max(rows.rowStride, byteCount))
    let bytes = UnsafeRawBufferPointer(start: rows.base + row * rows.rowStride, count: byteCount)
    return body(bytes.bytes)
  }
}

extension Strip {
  init(_ rows: ccodecs_rows, format: PixelFormat) {
    // A plane without rows may come without an address; nothing reads it.
    let anywhere = UnsafeRawPointer(bitPattern: 64)!
    func plane(_ base: UnsafePointer<UInt8>?, _ stride: Int, _ count: UInt32) -> Rows {
      Rows(base: base.map { UnsafeRawPointer($0) } ?? anywhere, rowStride: stride, rowCount: Int(count))
    }
    self.init(
      format: format,
      planes: (
        plane(rows.planes.0, rows.row_strides.0, rows.row_counts.0),
        plane(rows.planes.1, rows.row_strides.1, rows.row_counts.1),
        plane(rows.planes.2, rows.row_strides.2, rows.row_counts.2)
      ))
  }

  var handle: ccodecs_rows {
    func base(_ rows: Rows) -> UnsafePointer<UInt8>? { rows.base.assumingMemoryBound(to: UInt8.self) }
    return ccodecs_rows(
      planes: (base(planes.0), base(planes.1), base(planes.2)),
      row_strides: (planes.0.rowStride, planes.1.rowStride, planes.2.rowStride),
      row_counts: (UInt32(planes.0.rowCount), UInt32(planes.1.rowCount), UInt32(planes.2.rowCount)))
  }
}
