internal import CCodecs

/// Some rows of every plane of an image, top to bottom, borrowed from whoever made them.
///
/// A strip is lent for the length of one call and can't be copied. Planes may bring different numbers of rows: a
/// 4:2:0 chroma plane brings about half as many as its luma plane, and filters delay planes differently.
package struct Strip: ~Copyable {
  /// The layout of the samples.
  package let format: PixelFormat
  /// The rows of each plane; unused planes are empty.
  package let planes: (Rows, Rows, Rows)

  /// A strip of a format with one plane.
  package init(format: PixelFormat, rows: Rows) {
    self.format = format
    planes = (rows, rows.prefix(0), rows.prefix(0))
  }

  /// A strip of a format with three planes.
  package init(format: PixelFormat, planes: (Rows, Rows, Rows)) {
    self.format = format
    self.planes = planes
  }

  /// A strip of as many planes as `rows`: one, or three.
  package init(format: PixelFormat, rows: [Rows]) {
    if rows.count == 3 {
      self.init(format: format, planes: (rows[0], rows[1], rows[2]))
    } else {
      self.init(format: format, rows: rows[0])
    }
  }

  /// The rows of one plane, counted from 0.
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
  /// - `byteCount`: at most the bytes of a row of the plane; more traps.
  package func withRow<Result: ~Copyable>(
    _ row: Int, ofPlane index: Int, byteCount: Int, _ body: (RawSpan) -> Result
  ) -> Result {
    let rows = plane(index)
    // Extracting more than there is would give what there is.
    precondition(byteCount >= 0 && byteCount <= rows.rowByteCount, "rows are shorter")
    return rows.withRow(row) { body($0.extracting(first: byteCount)) }
  }
}

extension Strip {
  /// - `layout`: of the decoder whose rows these are.
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
