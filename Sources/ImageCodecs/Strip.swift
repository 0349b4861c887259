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
