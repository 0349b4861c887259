internal import CPixels
package import ImageCodecs

/// Multiplies colours by alpha, a few rows at a time, into a buffer of its own.
package struct Premultiplier {
  private let buffer: RowBuffer
  private let format: PixelFormat
  private let width: Int

  /// - `format`: `rgba8` or `rgba16`.
  /// - `rowCount`: rows that it takes at once at most.
  package init(_ format: PixelFormat, width: Int, rowCount: Int, budget: ImageBudget) throws(CodecError) {
    self.format = format
    self.width = width
    buffer = try RowBuffer(
      rowByteCount: width * PixelFormat.premultipliedRGBA16.pixelByteCount, rowCount: rowCount, budget: budget)
  }

  /// The bytes that it charges.
  package static func byteCount(width: Int, rowCount: Int) -> Int {
    width * PixelFormat.premultipliedRGBA16.pixelByteCount * rowCount
  }

  /// Rows that it takes at once at most.
  package var rowCount: Int { buffer.rowCount }

  /// At most `rowCount` rows, `premultipliedRGBA16`; valid until the next call.
  package func premultiply(_ rows: Strip.Rows) -> Strip.Rows {
    precondition(rows.isEmpty || rows.rowByteCount >= width * format.pixelByteCount, "rows are shorter")
    for row in 0..<rows.rowCount {
      let premultiplied = buffer.unsafeRow(row).assumingMemoryBound(to: UInt16.self)
      if format == .rgba16 {
        cpixels_premultiply_16bit(rows.samples(row), premultiplied, width)
      } else {
        cpixels_premultiply(rows.bytes(row), premultiplied, width, CPIXELS_ISA_BEST)
      }
    }
    return buffer.rows(count: rows.rowCount)
  }
}
